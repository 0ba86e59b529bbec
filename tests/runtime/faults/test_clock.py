"""Clocks that step back while the server is down: acknowledged turns stay visible, runs keep their
order."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest
from programs import wait_for

LIB = Path(__file__).resolve().parent.parent / "lib"

PYTHON = """
import operator, time
from pathlib import Path
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    said: Annotated[list, operator.add]

def answer(state, config):
    gate = config["configurable"].get("gate")
    while gate and not Path(gate).exists():
        time.sleep(0.02)
    return {"said": ["heard " + state["said"][-1]]}

graph = StateGraph(State).add_node(answer).add_edge(START, "answer").compile()
"""

TYPESCRIPT = """
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  said: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
  clocks: Annotation<number[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("answer", ({ said }) => ({ said: [`heard ${said.at(-1)}`], clocks: [Date.now()] }))
  .addEdge(START, "answer")
  .compile();
"""

NATIVE = """{
  "name": "native",
  "state": {"said": {"reducer": "add", "type": "list"}},
  "nodes": {"answer": {"kind": "set", "update": {"said": ["heard {{said[-1]}}"]}}},
  "edges": [["__start__", "answer"], ["answer", "__end__"]]
}"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("clock") / "stepped_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", out, LIB / "stepped_clock.c"], check=True)
    return out


@pytest.fixture
def server(request, project, library):
    options = []
    if getattr(request, "param", "sqlite") == "postgresql":
        first = os.environ["HEDDLE_TEST_PG_URL"]
        options = ["--store", f"{first}{'&' if '?' in first else '?'}schema=clock_{uuid.uuid4().hex[:12]}"]
    running = project(
        config={"graphs": {"python": "./python.py:graph", "native": "./native.json"}, "dependencies": ["."]},
        files={"python.py": PYTHON, "native.json": NATIVE},
        options=options,
    )
    running.library = library
    return running


def step(server, seconds: int) -> None:
    """Kills the server and starts it with a clock shifted by so many seconds."""
    server.kill()
    # The sanitizer requires to be loaded first, which is not necessary here.
    server.env = {
        "LD_PRELOAD": server.library,
        "STEPPED_CLOCK": seconds,
        "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
    }
    server.restart()


def says(turns: list[str]) -> list[str]:
    return [text for turn in turns for text in (turn, f"heard {turn}")]


def history_page(server, thread: str, before: str | None) -> list[dict]:
    body = {"limit": 2} | ({"before": before} if before else {})
    return server.ask("POST", f"/threads/{thread}/history", json=body)


def check(server, graph: str, thread: str, turns: list[str], runs: list[str]) -> None:
    state = server.state(thread)
    assert state["values"]["said"] == says(turns), graph
    assert server.ask("GET", f"/threads/{thread}")["values"]["said"] == says(turns)
    history = server.ask("POST", f"/threads/{thread}/history", json={"limit": 1000})
    ids = [each["checkpoint"]["checkpoint_id"] for each in history]
    assert ids[0] == state["checkpoint"]["checkpoint_id"]
    assert [each["parent_checkpoint"]["checkpoint_id"] for each in history[:-1]] == ids[1:]
    # The list is the same page by page.
    pages, before = [], None
    while page := history_page(server, thread, before):
        pages += [each["checkpoint"]["checkpoint_id"] for each in page]
        before = pages[-1]
    assert pages == ids
    assert [each["run_id"] for each in server.ask("GET", f"/threads/{thread}/runs?limit=100")] == runs[::-1]
    assert len(server.ask("GET", f"/threads/{thread}/branches")["branches"]) == 1


@pytest.mark.parametrize("server", ["sqlite", "postgresql"], indirect=True)
def test_a_turn_is_never_hidden(server):
    """The clock steps back by 1, 2, 5 and 30 seconds, each time across a restart."""
    threads = {graph: server.thread() for graph in ("python", "native")}
    turns, runs = [], {graph: [] for graph in threads}
    for offset in (0, -1, -3, -8, -38):
        if offset:
            step(server, offset)
        for graph, thread in threads.items():
            if turns:
                check(server, graph, thread, turns, runs[graph])
        turns.append(f"turn at {offset}")
        for graph, thread in threads.items():
            assert server.wait(graph, {"said": turns[-1:]}, thread)["said"] == says(turns), graph
            runs[graph].append(server.ask("GET", f"/threads/{thread}/runs")[0]["run_id"])
            check(server, graph, thread, turns, runs[graph])


def test_a_turn_of_a_typescript_graph_is_never_hidden(project, library):
    server = project(config={"graphs": {"ts": "./graph.ts:graph"}}, files={"graph.ts": TYPESCRIPT})
    server.library = library
    thread, turns, runs = server.thread(), [], []
    for offset in (0, -3600):
        if offset:
            step(server, offset)
            check(server, "ts", thread, turns, runs)
        turns.append(f"turn at {offset}")
        assert server.wait("ts", {"said": turns[-1:]}, thread)["said"] == says(turns)
        runs.append(server.ask("GET", f"/threads/{thread}/runs")[0]["run_id"])
        check(server, "ts", thread, turns, runs)
    clocks = server.state(thread)["values"]["clocks"]
    assert clocks == sorted(clocks, reverse=True), "the worker's clock did not step back"


def test_a_fork_is_the_head_with_any_clock(server):
    """The new branch of a graph in a worker has ids that sort before those of the other branch."""
    thread = server.thread()
    for turn in ("one", "two"):
        server.wait("python", {"said": [turn]}, thread)
    history = server.ask("POST", f"/threads/{thread}/history", json={"limit": 1000})
    fork = next(each["checkpoint"] for each in history if each["values"]["said"] == says(["one"]))
    step(server, -3600)
    made = server.wait("python", {"said": ["three"]}, thread, checkpoint=fork)
    assert made["said"] == says(["one", "three"])
    assert server.state(thread)["values"]["said"] == says(["one", "three"])
    assert server.wait("python", {"said": ["four"]}, thread)["said"] == says(["one", "three", "four"])


def test_queued_runs_keep_their_order_and_do_not_wait_for_the_clock(server, tmp_path):
    thread, gate = server.thread(), tmp_path / "go"
    for turn in ("a", "b", "c"):
        body = {
            "assistant_id": "python",
            "input": {"said": [turn]},
            "multitask_strategy": "enqueue",
            "config": {"configurable": {"gate": str(gate)}},
        }
        server.ask("POST", f"/threads/{thread}/runs", json=body)
        if turn == "a":
            wait_for(lambda: server.state(thread)["next"] == ["answer"], what="the first run")
    step(server, -3600)
    gate.touch()
    server.ask("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": "python", "input": {"said": ["d"]}})
    assert server.state(thread)["values"]["said"] == says(["a", "b", "c", "d"])
    assert [run["status"] for run in server.ask("GET", f"/threads/{thread}/runs")] == ["success"] * 4
