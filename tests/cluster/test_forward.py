"""Streams of threads at the servers that do not hold them, and clients of servers that stop."""

import time

import httpx
import pytest
from load import eventually
from plain import human
from readers import Reader
from talk import Talk

FROM_START = {"Last-Event-ID": "-1"}


@pytest.fixture
def three(shared):
    return shared.members


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


@pytest.fixture
def readers(talk, three):
    params = {"stream_modes": ["run_modes", "state_update"]}
    made = [Reader(each.url, talk.path("/stream"), params=params) for each in three]
    yield made
    for reader in made:
        reader.leaving = True


def agree(readers) -> list:
    first, *others = [reader.journal.frames for reader in readers]
    for frames in others:
        assert [number for _, _, number in frames] == [number for _, _, number in first]
        assert frames == first
    return first


def test_a_state_update_reaches_the_streams_of_all_servers(talk, three, readers):
    a, b, c = three
    for number, each in enumerate((b, a, c, b)):
        talk.ask(each, "POST", "/state", json={"values": human(f"n{number}"), "assistant_id": "echo"})
        for reader in readers:
            eventually(lambda: reader.journal.names().count("state_update") == number + 1)
    talk.join(c, talk.start(c, "echo", input=human("x")))
    talk.ask(a, "POST", "/state", json={"values": human("last"), "assistant_id": "echo"})
    for reader in readers:
        eventually(lambda: reader.journal.names().count("state_update") == 5)
    agree(readers)


def test_a_deleted_thread_ends_the_streams_of_all_servers(talk, three, readers):
    a, b, c = three
    talk.join(b, talk.start(b, "echo", input=human("x")))
    for reader in readers:
        eventually(lambda: reader.journal.names().count("end") == 1)
    talk.ask(c, "DELETE", "", 204)
    for reader in readers:
        reader.join()


def test_a_stream_loses_no_event_of_a_thread_that_changes_servers_quickly(talk, three, readers):
    for number in range(30):
        run = talk.start(three[number % 3], "echo", input=human(str(number)), stream_mode="values")
        talk.join(three[number * 7 % 3], run)
        if number % 5:
            time.sleep(0.3)
    for reader in readers:
        eventually(lambda: reader.journal.names().count("end") == 30 or not reader.thread.is_alive())
    frames = agree(readers)
    assert [name for name, _, _ in frames].count("end") == 30


def test_a_thread_stream_resumes_at_every_server(talk, three):
    for each in three:
        talk.join(each, talk.start(each, "echo", input=human(each.name)))
    whole = [Reader(each.url, talk.path("/stream"), headers=FROM_START) for each in three]
    for reader in whole:
        eventually(lambda: reader.journal.names().count("end") == 3)
        reader.leaving = True
    frames = agree(whole)
    for number in range(0, len(frames), 4):
        for each in three:
            headers = {"Last-Event-ID": str(frames[number][2])}
            reader = Reader(each.url, talk.path("/stream"), headers=headers)
            eventually(lambda: len(reader.journal.frames) == len(frames) - number - 1)
            assert reader.journal.frames == frames[number + 1 :]
            reader.leaving = True


def test_a_server_that_stops_cancels_no_run_of_its_clients(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    talk = Talk(servers, a)
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    talk.start(a, agent, input={"messages": []}, config=gate.config)
    eventually(lambda: gate.arrived == 1)
    reader = Reader(b.url, talk.path("/runs/stream"), "POST", json=gate.body(on_disconnect="cancel"))
    run = reader.headers["content-location"].rsplit("/", 1)[1]
    eventually(lambda: gate.arrived == 2)
    b.stop()
    reader.join()
    assert talk.run(c, run)["status"] == "running"
    gate.open()
    assert talk.join(c, run)["log"] == ["before", "through", "after"]


def test_a_head_request_gets_no_body_from_any_server(talk, three):
    talk.join(three[0], talk.start(three[0], "echo", input=human("x")))
    for each in three:
        answer = httpx.head(each.url + talk.path("/stream"), timeout=60)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        assert httpx.options(each.url + talk.path("/runs"), timeout=60).status_code == 204
