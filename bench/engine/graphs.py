"""The graphs of bench/engine in LangGraph for Python: one workload, one line of JSON.

    python graphs.py SAVER WORKLOAD SECONDS [AT_ONCE]

SAVER is memory or sqlite: the stock savers with their own settings, and LangGraph's default
durability (async), which is also the engine's. Workloads, inputs and counting are those of
engine.c: a superstep is one in which tasks run, and every run has its own thread, but the 100 turns
of a chat share one. AT_ONCE threads make as many concurrent runs.
"""

from __future__ import annotations

import json
import operator
import os
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from typing_extensions import TypedDict

TEXT = "word " * 100  # 500 bytes


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Count(TypedDict):
    count: Annotated[int, operator.add]


class Squares(TypedDict):
    n: int
    squares: Annotated[list, operator.add]
    count: int


def echo() -> StateGraph:
    builder = StateGraph(Chat)
    builder.add_node("reply", lambda state: {"messages": [AIMessage(state["messages"][-1].content)]})
    builder.add_edge(START, "reply")
    builder.add_edge("reply", END)
    return builder


def loop() -> StateGraph:
    builder = StateGraph(Count)
    builder.add_node("work", lambda state: {"count": 1})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: "work" if state["count"] < 5 else END, ["work", END])
    return builder


def fanout() -> StateGraph:
    builder = StateGraph(Squares)
    builder.add_node("square", lambda arg: {"squares": [arg["x"] * arg["x"]]})
    builder.add_node("done", lambda state: {"count": len(state["squares"])})
    builder.add_conditional_edges(
        START, lambda state: [Send("square", {"x": x}) for x in range(state["n"])], ["square"]
    )
    builder.add_edge("square", "done")
    return builder


# graph, input, supersteps of a run, runs on one thread, check of the output
WORKLOADS: dict[str, tuple] = {
    "echo": (echo, {"messages": ["Hello"]}, 1, 1, lambda out: len(out["messages"]) == 2),
    "loop": (loop, {"count": 0}, 5, 1, lambda out: out["count"] == 5),
    "fanout": (fanout, {"n": 100}, 2, 1, lambda out: out["count"] == 100),
    "chat": (echo, {"messages": [TEXT]}, 1, 100, lambda out: len(out["messages"]) == 200),
}


def open_file(stack: ExitStack) -> tuple[Any, Path]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")))
    saver = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/stock.db"))
    saver.setup()
    return saver, Path(folder) / "stock.db-wal"


def count_commits(wal: Path) -> int:
    """Counts the frames of a write-ahead log that end a transaction; it has only those since its
    last restart."""
    log = wal.read_bytes()
    frame = 24 + int.from_bytes(log[8:12], "big")
    return sum(
        log[at + 8 : at + 16] == log[16:24] and log[at + 4 : at + 8] != bytes(4)
        for at in range(32, len(log) - frame + 1, frame)
    )


def commits_per_superstep(workload: tuple) -> float:
    """Uses a new file and one run, so that the log has not been restarted."""
    with ExitStack() as stack:
        saver, wal = open_file(stack)
        graph = workload[0]().compile(checkpointer=saver)
        before = count_commits(wal)
        graph.invoke(workload[1], {"configurable": {"thread_id": "a"}})
        return (count_commits(wal) - before) / workload[2]


def open_saver(name: str, stack: ExitStack) -> tuple[Any, str]:
    """Returns the saver and its durability."""
    if name == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        return InMemorySaver(), "none"
    saver, _ = open_file(stack)
    return saver, f"WAL, synchronous={saver.conn.execute('PRAGMA synchronous').fetchone()[0]}"


def work(graph: Any, workload: tuple, end: float) -> int:
    """Runs until `end`, and finishes the last thread; returns the number of supersteps."""
    _, given, supersteps, turns, is_right = workload
    done = 0
    while time.perf_counter() < end:
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        for _ in range(turns):
            out = graph.invoke(given, config)
            done += supersteps
        assert is_right(out), out
    return done


def main() -> None:
    saver_name, name, length = sys.argv[1], sys.argv[2], float(sys.argv[3])
    at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    workload = WORKLOADS[name]
    with ExitStack() as stack:
        saver, durability = open_saver(saver_name, stack)
        graph = workload[0]().compile(checkpointer=saver)
        pool = stack.enter_context(ThreadPoolExecutor(at_once))

        def all_work(seconds: float) -> int:
            end = time.perf_counter() + seconds
            return sum(pool.map(lambda _: work(graph, workload, end), range(at_once)))

        all_work(max(1, length / 2))
        start, cpu = time.perf_counter(), time.process_time()
        steps = all_work(length)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        json.dumps(
            {
                "workload": name,
                "supersteps": steps,
                "supersteps_per_s": steps / wall,
                "cpu_us_per_superstep": 1e6 * cpu / steps,
                "commits_per_superstep": commits_per_superstep(workload) if saver_name == "sqlite" else 0,
                "durability": durability,
            }
        )
    )


if __name__ == "__main__":
    main()
