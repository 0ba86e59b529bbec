"""Every request works through every server, whichever holds the thread."""

import itertools
import json

import httpx
import pytest
from load import eventually
from plain import events, human, texts
from readers import Reader, agree
from talk import Talk

ORDERS = list(itertools.permutations(range(3)))


@pytest.fixture(params=ORDERS[::2], ids=lambda order: "".join("abc"[number] for number in order))
def three(request, shared):
    """The servers in three orders: the first one creates the runs."""
    return [shared.members[number] for number in request.param]


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


def gated(talk, gate, through, **more) -> str:
    """A run that waits at the gate."""
    before = gate.arrived
    run = talk.start(through, **{"assistant": "gated", "input": {"messages": []}, "config": gate.config} | more)
    eventually(lambda: gate.arrived > before)
    return run


def test_a_run_is_streamed_and_joined_through_other_servers(talk, three, gate):
    a, b, c = three
    run = gated(talk, gate, a, stream_mode=["values", "updates"])
    assert talk.holder() == a
    readers = [Reader(each.url, talk.path(f"/runs/{run}/stream"), headers={"Last-Event-ID": "-1"}) for each in three]
    assert [talk.run(each, run)["status"] for each in three] == ["running"] * 3
    assert [talk.record(each)["status"] for each in three] == ["busy"] * 3
    gate.open()
    journals = [reader.join() for reader in readers]
    assert journals[0].frames == journals[1].frames == journals[2].frames
    assert journals[0].has_ended() and journals[0].names().count("values") > 2
    for each in (c, b, a):
        assert talk.join(each, run)["log"] == ["before", "through", "after"]
        assert talk.run(each, run)["status"] == "success"
    talk.is_free()


def test_a_run_is_cancelled_through_another_server(talk, three, gate):
    a, b, c = three
    run = gated(talk, gate, a)
    receipt = talk.ask(b, "POST", f"/runs/{run}/cancel", params={"wait": "1"})
    assert receipt["status"] == "interrupted" and receipt["run_id"] == run
    assert talk.run(c, run)["status"] == "interrupted"
    run = gated(talk, gate, b)
    assert talk.ask(c, "POST", f"/runs/{run}/cancel", 202, params={"wait": "0"}) is None
    eventually(lambda: talk.run(a, run)["status"] == "interrupted")


def test_the_runs_of_a_thread_queue_in_the_order_of_their_creation(talk, three, gate):
    gated(talk, gate, three[0])
    runs = [talk.start(three[number % 3], "gated", input={}, config=gate.config) for number in range(6)]
    assert [each["run_id"] for each in talk.runs(three[1])][1:] == runs
    gate.open()
    for number, run in enumerate(runs):
        log = talk.join(three[number % 3], run)["log"]
        assert log == ["before", "through", "after"] * (number + 2), (number, log)


def test_a_busy_line_refuses_through_every_server(talk, three, gate):
    gated(talk, gate, three[0])
    for each in three:
        talk.start(each, "gated", 409, input={}, config=gate.config, multitask_strategy="reject")
        talk.ask(each, "POST", "/state", 409, json={"values": {"log": ["x"]}, "assistant_id": "gated"})
    # A line of another agent is free.
    for each in three:
        talk.ask(each, "POST", "/state", json={"values": human(each.name), "assistant_id": "echo"})
    gate.open()
    assert talk.said(three[1], assistant_id="echo") == [each.name for each in three]


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
def test_a_run_takes_the_place_of_another_through_another_server(talk, three, gate, strategy):
    a, b, c = three
    first = gated(talk, gate, a)
    second = gated(talk, gate, b, multitask_strategy=strategy)
    gate.open()
    assert talk.join(c, second)["log"][-3:] == ["before", "through", "after"]
    if strategy == "interrupt":
        assert talk.run(c, first)["status"] == "interrupted"
    else:
        talk.ask(c, "GET", f"/runs/{first}", 404)
        assert talk.state(c)["values"]["log"] == ["before", "through", "after"]


def test_a_state_update_follows_runs_of_other_servers(talk, three):
    a, b, c = three
    talk.wait(a, "echo", input=human("one"))
    talk.ask(b, "POST", "/state", json={"values": human("two"), "assistant_id": "echo"})
    talk.wait(c, "echo", input=human("three"))
    for each in three:
        assert talk.said(each) == ["one", "You said: one", "two", "three", "You said: three"]
        history = talk.ask(each, "POST", "/history", json={"limit": 100})
        assert [state["metadata"]["step"] for state in history] == list(range(len(history) - 2, -2, -1))


def test_a_wait_through_another_server_gets_the_result(talk, three, gate):
    gated(talk, gate, three[0])
    values = []

    def wait(through):
        with httpx.stream("POST", through.url + talk.path("/runs/wait"), timeout=60, json=gate.body()) as answer:
            gate.open()
            values.append(json.loads(answer.read()))

    wait(three[1])
    assert values[0]["log"] == ["before", "through", "after"] * 2


def test_a_stream_through_another_server_carries_its_headers(talk, three, gate):
    a, b, c = three
    gated(talk, gate, a)
    reader = Reader(b.url, talk.path("/runs/stream"), "POST", json=gate.body(stream_resumable=True))
    location = reader.headers["content-location"]
    assert location.startswith(talk.path("/runs/")) and reader.headers["content-type"].startswith("text/event-stream")
    gate.open()
    seen = reader.join()
    stored = Reader(c.url, location + "/stream", headers={"Last-Event-ID": "-1"}).join()
    agree(seen, stored)


def test_a_reader_that_leaves_cancels_its_run_on_another_server(talk, three, gate):
    a, b, c = three
    # Another agent's run makes a the holder.
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    staying = gated(talk, gate, a, assistant=agent)
    reader = Reader(b.url, talk.path("/runs/stream"), "POST", json=gate.body(on_disconnect="cancel"))
    run = reader.headers["content-location"].rsplit("/", 1)[1]
    eventually(lambda: gate.arrived == 2)
    reader.leave()
    eventually(lambda: talk.run(c, run)["status"] == "interrupted")
    assert talk.run(c, staying)["status"] == "running"
    gate.open()
    talk.join(c, staying)


def test_a_reader_that_leaves_lets_its_run_continue_on_another_server(talk, three, gate):
    a, b, c = three
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    gated(talk, gate, a, assistant=agent)
    reader = Reader(b.url, talk.path("/runs/stream"), "POST", json=gate.body(on_disconnect="continue"))
    run = reader.headers["content-location"].rsplit("/", 1)[1]
    eventually(lambda: gate.arrived == 2)
    reader.leave()
    gate.open()
    assert talk.join(c, run)["log"] == ["before", "through", "after"]


def test_large_bodies_pass_unchanged(talk, three, gate):
    a, b, c = three
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    gated(talk, gate, a, assistant=agent)
    text = "".join(chr(0x20 + number % 0x2000) for number in range(1_000_000))
    said = talk.wait(b, "echo", input=human(text))
    assert texts(said) == [text, f"You said: {text}"]
    answer = httpx.post(
        c.url + talk.path("/runs/stream"), json={"assistant_id": "echo", "input": human(text)}, timeout=60
    )
    assert texts([data for name, data, _ in events(answer.text) if name == "values"][-1])[-1] == f"You said: {text}"


def test_a_busy_thread_is_deleted_through_another_server(talk, three, gate):
    a, b, c = three
    run = gated(talk, gate, a)
    talk.ask(b, "DELETE", "", 204)
    for each in three:
        talk.ask(each, "GET", "", 404)
        talk.ask(each, "GET", f"/runs/{run}", 404)
    assert talk.cluster.sql(f"SELECT count(*) FROM checkpoints WHERE thread_id = '{talk.id}'") == "0"
    eventually(lambda: not a.in_flight())


def test_an_agent_is_removed_from_a_busy_thread_through_another_server(talk, three, gate):
    a, b, c = three
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    staying = gated(talk, gate, a)
    leaving = gated(talk, gate, b, assistant=agent)
    talk.ask(b, "DELETE", f"/agents/{agent}", 204)
    talk.ask(c, "GET", f"/runs/{leaving}", 404)
    assert talk.run(c, staying)["status"] == "running"


def test_an_assistant_whose_run_is_elsewhere_is_deleted(talk, three, gate):
    a, b, c = three
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    run = gated(talk, gate, a, assistant=agent)
    b.ask("DELETE", f"/assistants/{agent}")
    eventually(lambda: talk.run(c, run)["status"] == "interrupted")


def test_all_runs_of_all_servers_are_cancelled_at_once(shared, three, gate):
    talks = [Talk(shared, each) for each in three]
    runs = [gated(talk, gate, each) for talk, each in zip(talks, three)]
    assert [talk.holder() for talk in talks] == three
    httpx.post(three[1].url + "/runs/cancel", json={"status": "all"}, timeout=60).raise_for_status()
    for talk, run in zip(talks, runs):
        eventually(lambda: talk.run(three[2], run)["status"] == "interrupted")


def test_runs_without_a_thread_work_through_every_server(three):
    for each in three:
        assert texts(each.wait("echo", human("hi"))) == ["hi", "You said: hi"]
        assert each.stream("echo", human("hi"))[-1][0] == "end"


def test_a_thread_is_copied_and_pruned_while_another_server_holds_it(talk, three, gate):
    a, b, c = three
    talk.wait(a, "echo", input=human("one"))
    gated(talk, gate, a)
    copy = talk.ask(b, "POST", "/copy")["thread_id"]
    assert texts(c.state(copy, assistant_id="echo")["values"]) == ["one", "You said: one"]
    assert b.state(copy, assistant_id="gated")["values"]["log"] == ["before"]


def test_what_one_server_writes_all_servers_read(three):
    a, b, c = three
    agent = a.ask("POST", "/assistants", json={"graph_id": "echo", "name": "first"})["assistant_id"]
    assert c.ask("GET", f"/assistants/{agent}")["name"] == "first"
    b.ask("PATCH", f"/assistants/{agent}", json={"name": "second"})
    assert [each.ask("GET", f"/assistants/{agent}")["name"] for each in three] == ["second"] * 3
    item = {"namespace": ["cluster", a.name], "key": "k", "value": {"by": a.name}}
    a.ask("PUT", "/store/items", 204, json=item)
    params = {"namespace": f"cluster.{a.name}", "key": "k"}
    assert [each.ask("GET", "/store/items", params=params)["value"] for each in three] == [{"by": a.name}] * 3
    thread = b.thread(metadata={"by": b.name})
    c.ask("PATCH", f"/threads/{thread}", json={"metadata": {"seen": c.name}})
    assert a.ask("GET", f"/threads/{thread}")["metadata"] == {"by": b.name, "seen": c.name}
