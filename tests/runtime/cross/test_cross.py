"""Threads that one runtime starts and another continues: the same graphs in Python, TypeScript and
C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import collect
from project import Project

FOLDER = Path(__file__).parent / "project"
HI = {"messages": [{"type": "human", "content": "hi", "id": "h1"}], "log": ["in"]}

LOG = {"reducer": "add", "type": "list"}
MESSAGES = {"reducer": "messages"}


def says(name):
    return {"kind": "set", "update": {"log": [f"{name}:native"]}}


def asks(*questions):
    answers = [f"{{{{answers[{i}]}}}}:native" for i in range(len(questions))]
    return {"kind": "interrupt", "ask": list(questions), "update": {"log": answers}}


def native(name, nodes, edges, **more):
    state = {"log": LOG, "messages": MESSAGES, "extra": {}}
    return {"name": name, "state": state, "nodes": nodes, "edges": edges, **more}


INNER = native("inner", {"first": says("first"), "ask": asks("inner?")}, [["__start__", "first"], ["first", "ask"]])
REPLY = {"kind": "set", "update": {"messages": [{"type": "ai", "content": "x:native"}], "log": ["reply:native"]}}

NATIVE = {
    "chat": native("chat", {"reply": REPLY}, [["__start__", "reply"]]),
    "line": native("line", {"a": says("a"), "b": says("b")}, [["__start__", "a"], ["a", "b"]]),
    "ask": native("ask", {"ask": asks("one?")}, [["__start__", "ask"]]),
    "twice": native("twice", {"ask": asks("one?", "two?")}, [["__start__", "ask"]]),
    "parallel": native(
        "parallel",
        {"ask": asks("one?"), "done": says("done"), "end": says("end")},
        [["__start__", "ask"], ["__start__", "done"], [["ask", "done"], "end"]],
    ),
    "sends": native(
        "sends",
        {"plan": says("plan"), "work": says("work")},
        [["__start__", "plan"], {"from": "plan", "fanout": {"over": [1, 2, 3], "to": "work"}}],
    ),
    "join": native(
        "join",
        {name: says(name) for name in ("a", "b1", "b2", "c")},
        [["__start__", "a"], ["__start__", "b1"], ["b1", "b2"], [["a", "b2"], "c"]],
    ),
    "nested": native(
        "nested", {"sub": {"kind": "subgraph", "graph": "inner"}}, [["__start__", "sub"]], graphs={"inner": INNER}
    ),
}
NAMES = ["chat", "line", "ask", "twice", "parallel", "sends", "join", "nested", "foreign", "functional"]
FILES = {"python": "graphs.py", "js": "graphs.ts"}


def config_of(runtime: str) -> dict:
    if runtime == "native":
        return {"graphs": {name: f"./{name}.json" for name in NATIVE}}
    return {"graphs": {name: f"./{FILES[runtime]}:{name}" for name in NAMES}}


class Story:
    """One server after another on one database; each with the same graphs in another runtime."""

    def __init__(self, make, runtimes):
        self.runtimes = runtimes
        self.server = make(folder=FOLDER, config=config_of(runtimes[0]), files=native_files())
        self.threads: dict[str, str] = {}

    def become(self, runtime: str) -> None:
        self.server.stop()
        (self.server.project / "langgraph.json").write_text(json.dumps(config_of(runtime)))
        self.server.start()

    def begin(self, name: str, key: str | None = None, **body) -> dict:
        self.threads[key or name] = self.server.thread()
        return self.go_on(name, key, input=HI, **body)

    def go_on(self, name: str, key: str | None = None, **body) -> dict:
        return self.server.wait(name, thread=self.threads[key or name], **body)

    def state(self, key: str) -> dict:
        return self.server.state(self.threads[key])


def native_files() -> dict[str, str]:
    return {f"{name}.json": json.dumps(graph) for name, graph in NATIVE.items()}


def resume(answer) -> dict:
    return {"command": {"resume": answer}}


STORIES = [
    ("python", "js", "python"),
    ("js", "python", "js"),
    ("native", "js", "native"),
    ("python", "native", "python"),
]


@pytest.fixture(scope="module", params=STORIES, ids="-".join)
def story(request):
    """All threads of a scenario are started, carried over, and continued; tests check the results."""
    makers = collect(Project)
    make = next(makers)
    _, second, third = request.param
    told = {"runtimes": request.param}
    tale = Story(make, request.param)

    def has(name):
        return "native" not in request.param or name in NATIVE

    told["chat 1"] = tale.begin("chat")
    told["line 1"] = tale.begin("line", interrupt_before=["b"])
    told["ask 1"] = tale.begin("ask")
    told["twice 1"] = tale.begin("twice")
    told["parallel 1"] = tale.begin("parallel")
    told["sends 1"] = tale.begin("sends", interrupt_before=["work"])
    told["join 1"] = tale.begin("join", interrupt_before=["b2"])
    told["nested 1"] = tale.begin("nested")
    if has("foreign"):
        told["foreign 1"] = tale.begin("foreign", interrupt_before=["b"])
        told["functional 1"] = tale.begin("functional")

    tale.become(second)
    for name in ("ask", "twice", "parallel"):
        told[f"{name} state"] = tale.state(name)
    told["chat 2"] = tale.go_on("chat", input={"messages": [{"type": "human", "content": "more", "id": "h2"}]})
    told["line 2"] = tale.go_on("line")
    told["ask 2"] = tale.go_on("ask", **resume("x"))
    told["twice 2"] = tale.go_on("twice", **resume("x"))
    told["parallel 2"] = tale.go_on("parallel", **resume("x"))
    told["sends 2"] = tale.go_on("sends")
    told["join 2"] = tale.go_on("join")
    told["nested 2"] = tale.go_on("nested", **resume("x"))
    if has("foreign"):
        told["foreign 2"] = tale.go_on("foreign")
        told["functional 2"] = tale.go_on("functional", **resume("x"))

    tale.become(third)
    told["twice state 2"] = tale.state("twice")
    told["chat 3"] = tale.go_on("chat", input={"messages": [{"type": "human", "content": "last", "id": "h3"}]})
    told["twice 3"] = tale.go_on("twice", **resume("y"))
    told["nested 3"] = tale.go_on("nested", **resume("x"))
    told["nested state"] = tale.state("nested")
    if has("foreign"):
        told["foreign 3"] = tale.go_on("foreign")
        told["functional 3"] = tale.go_on("functional", **resume("x"))
    yield told
    for _ in makers:
        pass


def test_turns_alternate(story):
    first, second, third = story["runtimes"]
    said = story["chat 3"]["messages"]
    assert [each["type"] for each in said] == ["human", "ai"] * 3
    assert story["chat 3"]["log"] == ["in", f"reply:{first}", f"reply:{second}", f"reply:{third}"]


def test_breakpoints_are_left(story):
    first, second, _ = story["runtimes"]
    assert story["line 2"]["log"] == ["in", f"a:{first}", f"b:{second}"]


def test_an_interrupt_is_answered(story):
    _, second, _ = story["runtimes"]
    assert [each["value"] for each in story["ask state"]["interrupts"]] == ["one?"]
    assert story["ask state"]["next"] == ["ask"]
    assert story["ask 2"]["log"] == ["in", f"x:{second}"]


def test_interrupts_of_one_node_are_answered_one_by_one(story):
    _, _, third = story["runtimes"]
    assert [each["value"] for each in story["twice state"]["interrupts"]] == ["one?"]
    assert [each["value"] for each in story["twice 2"]["__interrupt__"]] == ["two?"]
    assert [each["value"] for each in story["twice state 2"]["interrupts"]] == ["two?"]
    assert story["twice 3"]["log"] == ["in", f"x:{third}", f"y:{third}"]


def test_finished_tasks_are_not_repeated(story):
    first, second, _ = story["runtimes"]
    state = story["parallel state"]
    assert state["next"] == ["ask"]
    assert [(each["name"], bool(each["result"])) for each in state["tasks"]] == [("ask", False), ("done", True)]
    log = story["parallel 2"]["log"]
    assert sorted(log[:-1]) == sorted(["in", f"done:{first}", f"x:{second}"])
    assert log[-1] == f"end:{second}"


def test_sends_are_carried_over(story):
    first, second, _ = story["runtimes"]
    assert story["sends 2"]["log"] == ["in", f"plan:{first}", *[f"work:{second}"] * 3]


def test_half_of_a_join_is_carried_over(story):
    first, second, _ = story["runtimes"]
    log = story["join 2"]["log"]
    assert sorted(log[1:3]) == [f"a:{first}", f"b1:{first}"]
    assert log[3:] == [f"b2:{second}", f"c:{second}"]


def test_interrupts_in_subgraphs_wait_for_their_runtime(story):
    """Runtimes with the same id scheme (Python and C) need not."""
    first, second, third = story["runtimes"]
    if {first, second} <= {"python", "native"}:
        assert story["nested 2"]["log"] == ["in", "in", f"first:{first}", f"x:{second}"]
        return
    assert "within a subgraph" in story["nested 2"]["__error__"]["message"]
    assert story["nested 3"]["log"] == ["in", "in", f"first:{first}", f"x:{third}"]


def test_values_of_one_runtime_wait_for_it(story):
    if "foreign 1" not in story:
        pytest.skip("not all three runtimes have such values")
    assert "only the runtime which wrote it" in story["foreign 2"]["__error__"]["message"]
    assert story["foreign 3"]["log"][-1] == f"b:{story['runtimes'][2]}"


def test_functional_graphs_wait_for_their_runtime(story):
    if "functional 1" not in story:
        pytest.skip("not all three runtimes have functions")
    assert "another runtime" in story["functional 2"]["__error__"]["message"]
    assert story["functional 3"]["log"] == [4, "x"]
