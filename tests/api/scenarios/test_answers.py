"""A resume value applies only to the interrupt that the client saw: not to another one after a
crash, and not when it is sent twice."""

import json

import httpx
import pytest
from plain import Thread, until
from server import Server

pytestmark = pytest.mark.beyond_peer("takes an old answer for the next question")

PAIR = {
    "name": "pair",
    "state": {"log": {"reducer": "add", "type": "list"}},
    "nodes": {
        "ask": {
            "kind": "interrupt",
            "ask": ["delete a?", "delete b?"],
            "update": {"log": ["a: {{answers[0]}}, b: {{answers[1]}}"]},
        },
        "work": {"kind": "sleep", "ms": 5000, "update": {"log": ["worked"]}},
    },
    "edges": [["__start__", "ask"], ["__start__", "work"], ["ask", "__end__"], ["work", "__end__"]],
}


def asked(thread: Thread) -> dict:
    """Returns the pending interrupts with their ids."""
    return {each["value"]: each["id"] for task in thread.state()["tasks"] for each in task["interrupts"]}


def test_a_run_without_an_answer_is_interrupted_again(http):
    thread = Thread(http)
    thread.run("questions", input={})
    thread.run("questions", command={"resume": "Ann"})
    values = thread.run("questions", input=None)
    assert values["log"] == []
    assert [each["value"] for each in values["__interrupt__"]] == [{"age of": "Ann"}]
    assert thread.run("questions", command={"resume": 7})["log"] == ["Ann is 7"]


def test_a_repeated_answer_does_not_answer_the_next_question(http):
    thread = Thread(http)
    thread.run("questions", input={})
    answer = {"resume": {asked(thread)["name?"]: "Ann"}}
    thread.run("questions", command=answer)
    before = thread.state()
    assert thread.run("questions", command=answer)["log"] == []
    assert thread.state()["tasks"] == before["tasks"]
    (question,) = before["tasks"][0]["interrupts"]
    assert thread.run("questions", command={"resume": {question["id"]: 7}})["log"] == ["Ann is 7"]


@pytest.mark.parametrize("by_id", [False, True])
def test_after_a_crash_an_answer_is_not_given_to_the_next_question(tmp_path, by_id):
    path = tmp_path / "pair.json"
    path.write_text(json.dumps(PAIR))
    server = Server.create(graphs={"pair": path})
    try:
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as http:
            thread = Thread(http)
            run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "pair", "input": {}})
            until(lambda: "delete a?" in asked(thread))
            thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel"), params={"wait": 1})
            answer = {asked(thread)["delete a?"]: "yes"} if by_id else "yes"
            thread.ask("POST", thread.path("/runs"), json={"assistant_id": "pair", "command": {"resume": answer}})
            until(lambda: "delete b?" in asked(thread))
        server.kill()
        server.restart()
        with httpx.Client(base_url=server.url, timeout=60) as http:
            thread.http = http
            until(lambda: thread.record()["status"] != "busy")
            assert thread.record()["status"] == "interrupted"
            assert list(asked(thread)) == ["delete b?"]
            assert sorted(thread.run("pair", command={"resume": "no"})["log"]) == ["a: yes, b: no", "worked"]
        server.stop()
    finally:
        server.remove()


INSIDE = {
    "name": "inside",
    "state": {"ms": {"type": "number"}, "log": {"reducer": "add", "type": "list"}},
    "nodes": {
        "part": {"kind": "subgraph", "graph": "part"},
        "ask": {
            "kind": "interrupt",
            "ask": ["delete a?", "delete b?"],
            "update": {"log": ["a: {{answers[0]}}, b: {{answers[1]}}"]},
        },
    },
    "edges": [["__start__", "part"], ["__start__", "ask"], ["part", "__end__"], ["ask", "__end__"]],
    "graphs": {
        "part": {
            "state": {"ms": {"type": "number"}, "log": {"reducer": "add", "type": "list"}},
            "nodes": {
                "ask": {"kind": "interrupt", "ask": ["go?"], "update": {"log": ["go: {{answers[0]}}"]}},
                "work": {"kind": "sleep", "ms": "{{ms}}"},
            },
            "edges": [["__start__", "ask"], ["ask", "work"], ["work", "__end__"]],
        }
    },
}


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """A thread with three interrupts, two of them resumed: a task inside the subgraph is running."""
    path = tmp_path_factory.mktemp("graphs") / "inside.json"
    path.write_text(json.dumps(INSIDE))
    with Server.create(graphs={"inside": path}) as server, httpx.Client(base_url=server.url, timeout=60) as http:

        def make():
            thread = Thread(http)
            thread.run("inside", input={"ms": 600_000})
            ids = asked(thread)
            body = {"assistant_id": "inside", "command": {"resume": {ids["delete a?"]: "yes", ids["go?"]: "yes"}}}
            run = thread.ask("POST", thread.path("/runs"), json=body)
            until(lambda: "delete b?" in asked(thread))
            until(lambda: working(thread))
            return thread, run

        yield make


def working(thread: Thread) -> bool:
    tasks = thread.state(subgraphs=True)["tasks"]
    return any((task["state"] or {}).get("next") == ["work"] for task in tasks)


def test_a_run_that_is_rolled_back_takes_its_answers_along(inside):
    thread, run = inside()
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel"), params={"wait": 1, "action": "rollback"})
    assert sorted(asked(thread)) == ["delete a?", "go?"]
    assert thread.record()["status"] == "interrupted"
    [said] = [state for state in thread.history() if state["next"] == ["part", "ask"]]
    assert sorted(each["value"] for task in said["tasks"] for each in task["interrupts"]) == ["delete a?", "go?"]
    again = thread.run("inside", input=None)
    assert sorted(each["value"] for each in again["__interrupt__"]) == ["delete a?", "go?"]
    # The second attempt may send other resume values.
    ids = asked(thread)
    body = {"assistant_id": "inside", "command": {"resume": {ids["delete a?"]: "no", ids["go?"]: "no"}}}
    thread.ask("POST", thread.path("/runs"), json=body)
    until(lambda: "delete b?" in asked(thread) and working(thread))
    tasks = thread.state(subgraphs=True)["tasks"]
    assert [task["state"]["values"]["log"] for task in tasks if task["state"]] == [["go: no"]]
    thread.ask("DELETE", thread.path(""), 204)


def test_a_question_that_was_answered_does_not_wait_when_the_run_is_stopped(inside):
    thread, run = inside()
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel"), params={"wait": 1})
    assert list(asked(thread)) == ["delete b?"]
    record = thread.record()
    assert record["status"] == "interrupted"
    assert [each["value"] for task in record["interrupts"].values() for each in task] == ["delete b?"]
    assert sorted(thread.state()["next"]) == ["ask", "part"]
