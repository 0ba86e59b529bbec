"""Writes values.json and python.json: what LangGraph for Python stores, and what it says of it.

    python tests/data/foreign/make.py     (needs langgraph, numpy, orjson and the heddle package)

The tests in C read the files; nothing else needs Python.
"""

from __future__ import annotations

import json
import operator
import pathlib
import re
import sys
import uuid
from base64 import b64encode
from collections import deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address
from typing import Annotated, Any, TypedDict
from zoneinfo import ZoneInfo

import numpy
from heddle import CanonicalSerializer
from heddle.runtime.render import render
from heddle.runtime.structure import structure
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import get_checkpoint_metadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Interrupt, Overwrite, Send, interrupt
from pydantic import BaseModel, SecretStr

HERE = pathlib.Path(__file__).parent


# ---- values ------------------------------------------------------------


class Color(Enum):
    RED = "red"
    ONE = 1


@dataclass
class Place:
    name: str
    at: tuple[float, float] = (1.5, -2.0)
    tags: list[str] = field(default_factory=list)


class Person(BaseModel):
    name: str
    born: date
    key: SecretStr = SecretStr("hidden")
    friend: Place | None = None


Point = namedtuple("Point", "x y")

VALUES: dict[str, Any] = {
    "nothing": [None, True, False],
    "integers": [0, 127, 128, -1, -32, -33, -129, 65536, -40000, 2**31, -(2**40), 2**63 - 1, 2**64 - 1],
    "floats": [0.5, -0.0, 1e300, 1e-7, float("nan"), float("inf"), 3.0],
    "strings": ["", "ä€𝄞", "x" * 40, "y" * 300, "z" * 70000, 'a"b\\c\n'],
    "bytes": [b"", b"\0\xff", b"q" * 300],
    "lists": [[], [[1], [2, [3]]], list(range(20))],
    "dicts": {"a": {}, "b": {"c": [1]}, "many": {str(i): i for i in range(20)}},
    "keys": [{1: "a"}, {None: 1}, {True: 2}, {uuid.UUID(int=5): 3}, {1.5: 1}],
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "decimals": [Decimal("1.50"), Decimal(-10), Decimal("NaN"), Decimal("1E+2"), Decimal(0)],
    "sets": [{1}, frozenset({"a"}), deque([1, 2])],
    "addresses": [ip_address("127.0.0.1"), ip_address("::1")],
    "zone": ZoneInfo("Europe/Berlin"),
    "enums": [Color.RED, Color.ONE],
    "paths": [pathlib.Path("/a/b"), pathlib.Path("c/d"), pathlib.Path("."), pathlib.Path("/")],
    "pattern": re.compile("a+", re.IGNORECASE),
    "spans": [timedelta(days=1, seconds=2, microseconds=3), timedelta(-1), timedelta(0)],
    "date": date(2024, 2, 29),
    "datetimes": [datetime(2024, 1, 2, 3, 4, 5), datetime(2024, 1, 2, tzinfo=UTC)],
    "times": [
        time(1, 2),
        time(1, 2, 3, 4),
        time(1, 2, tzinfo=UTC),
        time(1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
    ],
    "timezones": [
        UTC,
        timezone(timedelta(hours=5, minutes=30)),
        timezone(timedelta(hours=-8), "PST"),
    ],
    "dataclass": Place("x", tags=["a"]),
    "model": Person(name="Ada", born=date(1815, 12, 10), friend=Place("y")),
    "namedtuple": Point(1, [2]),
    "messages": [HumanMessage("hi", id="1"), AIMessage("yo", id="2", name="bot")],
    "document": Document("text", metadata={"a": 1}, id="d"),
    "interrupt": Interrupt(value=[1], id="i"),
    "send": Send("node", {"x": Place("z")}),
    "vector": numpy.array([1.5, 2.0], dtype="float64"),
    "matrices": [
        numpy.arange(6, dtype="int32").reshape(2, 3),
        numpy.asfortranarray(numpy.arange(6, dtype="int64").reshape(2, 3)),
        numpy.array([[True], [False]]),
        numpy.array([1, 255], dtype="uint8"),
        numpy.array([-1, 5], dtype="int8"),
        numpy.zeros((0, 3)),
        numpy.array([0.5], dtype="float32"),
    ],
}


def values() -> list[dict[str, Any]]:
    serializer = JsonPlusSerializer()
    cases = []
    for name, value in VALUES.items():
        tag, data = serializer.dumps_typed(value)
        shown = json.loads(render(value))
        if name == "matrices":
            shown = [each.tolist() for each in value]
        cases.append({"name": name, "type": tag, "data": b64encode(data).decode(), "shown": shown})
    return cases


# ---- states ------------------------------------------------------------


class Recorder(InMemorySaver):
    """Keeps what it is given in the canonical encoding, as the server does."""

    def __init__(self) -> None:
        super().__init__(serde=CanonicalSerializer())
        self.puts: list[dict[str, Any]] = []

    def _value(self, channel: str, value: Any) -> list[str]:
        tag, data = self.serde.dumps_typed(value)
        return [channel, tag, b64encode(data).decode()]

    def put(self, config, checkpoint, metadata, new_versions):
        where = config["configurable"]
        values = checkpoint["channel_values"]
        self.puts.append(
            {
                "ns": where.get("checkpoint_ns", ""),
                "id": checkpoint["id"],
                "parent": where.get("checkpoint_id"),
                "checkpoint": {k: v for k, v in checkpoint.items() if k != "channel_values"},
                "metadata": get_checkpoint_metadata(config, metadata),
                "new_versions": dict(new_versions),
                "values": [self._value(k, values[k]) for k in new_versions if k in values],
            }
        )
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config, writes, task_id, task_path=""):
        where = config["configurable"]
        self.puts.append(
            {
                "ns": where.get("checkpoint_ns", ""),
                "id": where["checkpoint_id"],
                "task": task_id,
                "path": task_path,
                "writes": [self._value(k, v) for k, v in writes],
            }
        )
        return super().put_writes(config, writes, task_id, task_path)


def place(config: Any) -> Any:
    if not config:
        return None
    where = config["configurable"]
    return {
        "thread_id": where["thread_id"],
        "checkpoint_ns": where.get("checkpoint_ns", ""),
        "checkpoint_id": where.get("checkpoint_id"),
        "checkpoint_map": where.get("checkpoint_map"),
    }


def shown_task(one: Any) -> dict[str, Any]:
    is_state = hasattr(one.state, "next")
    return {
        "id": one.id,
        "name": one.name,
        "path": list(one.path),
        "error": one.error,
        "interrupts": [{"id": i.id, "value": i.value} for i in one.interrupts],
        "checkpoint": None if is_state else place(one.state),
        "state": shown(one.state, True) if is_state else None,
        "result": one.result,
    }


def shown(state: Any, is_inner: bool = False) -> dict[str, Any]:
    """As the HTTP API has it (ThreadState)."""
    is_there = state.metadata is not None
    parent = place(state.parent_config)
    return {
        "values": state.values,
        "next": list(state.next),
        "tasks": [shown_task(t) for t in state.tasks],
        "metadata": state.metadata or {},
        "created_at": state.created_at,
        "checkpoint": place(state.config) if is_there or is_inner else None,
        "parent_checkpoint": parent,
        "interrupts": [{"id": i.id, "value": i.value} for i in state.interrupts],
        "checkpoint_id": place(state.config)["checkpoint_id"] if is_there else None,
        "parent_checkpoint_id": parent and parent["checkpoint_id"],
    }


# What only the structure tells: where a subgraph's memory is, and what an entrypoint is called.
CLOSED = ("nested with a memory of its own", "functional")


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list, operator.add]
    name: str


def chat() -> Any:
    return (
        StateGraph(Chat)
        .add_node("model", lambda s: {"messages": [AIMessage("hello", id="a1")], "name": "x"})
        .add_edge(START, "model")
    )


def parallel() -> Any:
    def ask(state):
        return {"log": [interrupt("which?")]}

    return (
        StateGraph(Chat)
        .add_node("ask", ask)
        .add_node("done", lambda s: {"log": ["done"], "messages": [HumanMessage("m", id="h2")]})
        .add_node("join", lambda s: {"log": ["join"]})
        .add_edge(START, "ask")
        .add_edge(START, "done")
        .add_edge(["ask", "done"], "join")
    )


def twice() -> Any:
    def ask(state):
        return {"log": [interrupt({"q": 1}), interrupt({"q": 2})]}

    return StateGraph(Chat).add_node("ask", ask).add_edge(START, "ask")


def sends() -> Any:
    def work(arg):
        return {"log": [interrupt(arg["n"]) if arg["n"] == 1 else arg["n"]]}

    return (
        StateGraph(Chat)
        .add_node("plan", lambda s: {"log": ["plan"]})
        .add_node("work", work)
        .add_edge(START, "plan")
        .add_conditional_edges("plan", lambda s: [Send("work", {"n": i}) for i in range(3)], ["work"])
    )


def nested(checkpointer: Any = None) -> Any:
    def ask(state):
        return {"log": [interrupt("inner?")]}

    inner = (
        StateGraph(Chat)
        .add_node("first", lambda s: {"log": ["first"]})
        .add_node("ask", ask)
        .add_edge(START, "first")
        .add_edge("first", "ask")
        .compile(checkpointer=checkpointer)
    )
    middle = StateGraph(Chat).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=checkpointer)
    return (
        StateGraph(Chat)
        .add_node("before", lambda s: {"log": ["before"]})
        .add_node("sub", middle)
        .add_edge(START, "before")
        .add_edge("before", "sub")
    )


def deferred() -> Any:
    def ask(state):
        return {"log": [interrupt("wait")]}

    return (
        StateGraph(Chat)
        .add_node("a", lambda s: {"log": ["a"]})
        .add_node("b", ask)
        .add_node("last", lambda s: {"log": ["last"]}, defer=True)
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge("a", "last")
        .add_edge("b", "last")
    )


def failing() -> Any:
    def fail(state):
        raise ValueError("no")

    return (
        StateGraph(Chat)
        .add_node("good", lambda s: {"name": "n"})
        .add_node("bad", fail)
        .add_edge(START, "good")
        .add_edge("good", "bad")
    )


class Typed(BaseModel):
    person: Place | None = None
    when: datetime | None = None
    ids: list[uuid.UUID] = []
    index: dict[int, str] = {}


def typed() -> Any:
    def fill(state):
        return {
            "person": Place("p"),
            "when": datetime(2024, 5, 6, tzinfo=UTC),
            "ids": [uuid.UUID(int=9)],
            "index": {1: "one"},
        }

    return StateGraph(Typed).add_node("fill", fill).add_edge(START, "fill")


def rooted() -> Any:
    builder = StateGraph(Annotated[list, operator.add])
    return builder.add_node("one", lambda s: [len(s)]).add_edge(START, "one")


def jumping() -> Any:
    return (
        StateGraph(Chat)
        .add_node("go", lambda s: Command(update={"log": ["go"]}, goto="there"), destinations=("there",))
        .add_node("there", lambda s: {"log": Overwrite(["only"])})
        .add_edge(START, "go")
    )


def functional(saver: Any) -> Any:
    @task
    def double(n):
        return n * 2

    @entrypoint(checkpointer=saver)
    def flow(n: int, *, previous: Any = None):
        return entrypoint.final(value=double(n).result() + interrupt("more?"), save=n)

    return flow


def run(graph: Any, config: Any, inputs: list[Any], saver: Recorder, subject: dict[str, Any]) -> None:
    """After each input: what the graph says of its thread."""
    for given in inputs:
        try:
            graph.invoke(given, config)
        except ValueError:
            pass
        states = [{"subgraphs": False, "state": shown(graph.get_state(config))}]
        states.append({"subgraphs": True, "state": shown(graph.get_state(config, subgraphs=True))})
        for state in graph.get_state_history(config):
            at = state.config["configurable"]["checkpoint_id"]
            states.append({"id": at, "subgraphs": False, "state": shown(state)})
        for one in graph.get_state(config).tasks:
            if one.state:
                inner = {
                    "configurable": {"thread_id": "t", "checkpoint_ns": one.state["configurable"]["checkpoint_ns"]}
                }
                states.append(
                    {
                        "ns": inner["configurable"]["checkpoint_ns"],
                        "subgraphs": False,
                        "state": shown(graph.get_state(inner)),
                    }
                )
        subject["steps"].append({"puts": saver.puts, "states": states})
        saver.puts = []


def case(name: str, builder: Any, inputs: list[Any], **options: Any) -> dict[str, Any]:
    saver = Recorder()
    graph = builder(saver) if builder is functional else builder().compile(checkpointer=saver, **options)
    subject: dict[str, Any] = {"name": name, "ids": "python", "structure": structure(graph), "steps": []}
    subject["is_closed"] = name in CLOSED
    run(graph, {"configurable": {"thread_id": "t"}}, inputs, saver, subject)
    return subject


def states() -> list[dict[str, Any]]:
    hi = {"messages": [HumanMessage("hi", id="h1")]}
    return [
        case("chat", chat, [hi, {"messages": [HumanMessage("more", id="h3")]}]),
        case("nothing is written", chat, [{"name": "only"}]),
        case("breakpoint", chat, [hi, None], interrupt_before=["model"]),
        case("parallel", parallel, [hi, Command(resume="this")]),
        case("two questions", twice, [hi, Command(resume="a"), Command(resume="b")]),
        case("sends", sends, [hi, Command(resume="r")]),
        case("nested", nested, [hi, Command(resume="r")]),
        case("nested with a memory of its own", lambda: nested(True), [hi, Command(resume="r"), hi]),
        case("deferred", deferred, [hi, Command(resume="r")]),
        case("failing", failing, [hi]),
        case("typed", typed, [{}]),
        case("rooted", rooted, [["a"], ["b"]]),
        case("jumping", jumping, [hi]),
        case("functional", functional, [3, Command(resume=4), 5]),
    ]


def main() -> None:
    (HERE / "values.json").write_text(json.dumps(values(), indent=1) + "\n")
    (HERE / "python.json").write_bytes(json.dumps(json.loads(render(states()))).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
