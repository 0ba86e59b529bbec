"""Streams that pass from server to server: each event once, in order."""

import json

import httpx
import pytest
from load import eventually
from plain import human
from readers import Journal, Reader, agree, read_some
from talk import Talk

FROM_START = {"Last-Event-ID": "-1"}


@pytest.fixture
def three(shared):
    return shared.members


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


def test_a_stream_of_an_idle_thread_gets_the_events_of_a_run_elsewhere(talk, three):
    a, b, c = three
    readers = [Reader(each.url, talk.path("/stream")) for each in three]
    for number, each in enumerate((b, c, a, b)):
        run = talk.start(each, "echo", input=human(f"turn {number}"), stream_mode=["values", "messages-tuple"])
        talk.join(each, run)
        for reader in readers:
            eventually(lambda: reader.journal.names().count("end") == number + 1)
            assert reader.journal.frames[-1][1]["run_id"] == run
    assert readers[0].journal.frames == readers[1].journal.frames == readers[2].journal.frames
    for reader in readers:
        assert reader.thread.is_alive(), "the stream of a thread does not end"


def test_a_stream_of_a_thread_follows_it_to_other_servers(cluster):
    servers = cluster()
    a, b, c = servers.members
    talk = Talk(servers, a)
    reader = Reader(a.url, talk.path("/stream"))
    for number, each in enumerate((b, c)):
        run = talk.start(each, "nap", input={"ms": 1000}, stream_mode="values", durability="sync")
        eventually(lambda: talk.state(a)["next"] == ["sleep"])
        each.kill()
        talk.join(a, run)
        eventually(lambda: reader.journal.names().count("end") == number + 1)
    assert [frame[1]["log"] for frame in reader.journal.frames if frame[0] == "values"][-1] == (
        ["before", "slept", "after"] * 2
    )


def test_a_reader_that_changes_the_server_after_each_event_sees_each_once(talk, three):
    run = talk.start(three[0], "slow", input=human("go"), stream_mode=["values", "messages-tuple", "updates"])
    path, journal, turns = talk.path(f"/runs/{run}/stream"), Journal(), 0
    while not journal.has_ended():
        read_some(three[turns % 3].url, path, journal, 1)
        turns += 1
    assert turns > 10
    agree(journal, Reader(three[1].url, path, headers=FROM_START).join())


def test_a_reader_behind_a_proxy_sees_each_event_once(shared, talk, three):
    run = talk.start(three[1], "slow", input=human("go"), stream_mode=["values", "messages-tuple", "updates"])
    path, journal = talk.path(f"/runs/{run}/stream"), Journal()
    while not journal.has_ended():
        read_some(shared.url, path, journal, 2)
    agree(journal, Reader(three[0].url, path, headers=FROM_START).join())


def test_the_stored_events_are_the_same_from_every_server_and_every_event(talk, three):
    run = talk.start(three[2], "loop", input={"count": 0}, stream_mode=["values", "updates", "custom"])
    talk.join(three[0], run)
    path = talk.path(f"/runs/{run}/stream")
    whole = Reader(three[2].url, path, headers=FROM_START).join().frames
    for each in three:
        for number in range(0, len(whole), 3):
            headers = {"Last-Event-ID": str(whole[number][2])}
            assert Reader(each.url, path, headers=headers).join().frames == whole[number + 1 :]


def test_events_that_are_only_in_memory_are_read_from_the_last_holder(talk, three):
    a, b, c = three
    run = talk.start(a, "echo", input=human("hi"), stream_resumable=False, stream_mode="values")
    talk.join(a, run)
    talk.is_free()
    journals = [Reader(each.url, talk.path(f"/runs/{run}/stream"), headers=FROM_START).join() for each in three]
    assert journals[0].frames == journals[1].frames == journals[2].frames
    assert journals[0].names()[0] == "metadata" and journals[0].has_ended()


def test_numbers_grow_when_a_thread_passes_from_server_to_server(talk, three):
    last = -1
    for number in range(9):
        run = talk.start(three[number % 3], "echo", input=human(str(number)), stream_mode="values")
        talk.join(three[(number + 1) % 3], run)
        frames = Reader(three[(number + 2) % 3].url, talk.path(f"/runs/{run}/stream"), headers=FROM_START).join().frames
        assert frames[0][2] > last
        last = frames[-1][2]


def test_a_stream_through_another_server_shows_each_event_when_it_happens(talk, three, gate):
    a, b, _ = three
    run = talk.start(a, "gated", input={}, config=gate.config, stream_mode="updates")
    eventually(lambda: gate.arrived)
    reader = Reader(b.url, talk.path(f"/runs/{run}/stream"), headers=FROM_START)
    eventually(lambda: reader.journal.names() == ["metadata", "updates"])
    gate.open()
    assert json.dumps([data for name, data, _ in reader.join().frames if name == "updates"]).count("through") == 1


def test_a_slow_reader_of_another_server_does_not_lose_events(talk, three):
    """More events than the buffers on the way hold."""
    a, b, _ = three
    text = "word " * 20_000
    body = {"assistant_id": "echo", "input": human(text), "stream_mode": ["messages-tuple"], "stream_resumable": True}
    agent = a.ask("POST", "/assistants", json={"graph_id": "nap"})["assistant_id"]
    talk.start(a, agent, input={"ms": 5000})
    talk.is_held()
    journal = Journal()
    with httpx.stream("POST", b.url + talk.path("/runs/stream"), json=body, timeout=120) as answer:
        path = answer.headers["content-location"] + "/stream"
        for number, piece in enumerate(answer.iter_text()):
            journal.feed(piece)
            if number > 3:
                break
    journal.breaks()
    while not journal.has_ended():
        read_some(b.url, path, journal, 10**6)
    words = [data[0]["content"] for name, data, _ in journal.frames if name == "messages"]
    assert "".join(words) == f"You said: {text}"
