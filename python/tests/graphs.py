"""Real graphs, each with a script that exercises its checkpointer.

A script is an async function of a `Runner`, which hides whether the graph is
run by its sync or its async methods, and of the durability to run with.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

try:
    from langgraph.channels.delta import DeltaChannel
except ImportError:
    DeltaChannel = None  # type: ignore[assignment, misc]


class Runner:
    """One graph on one saver, run by its sync or async methods."""

    def __init__(self, saver: BaseCheckpointSaver[Any], is_async: bool, durability: Any) -> None:
        self.saver = saver
        self.is_async = is_async
        self.durability = durability
        self.graph: Any = None
        self.config: dict[str, Any] = {"configurable": {"thread_id": "t", "user": "u1"}}

    def compile(self, builder: Any, **options: Any) -> None:
        self.graph = builder.compile(checkpointer=self.saver, **options)

    async def invoke(self, input: Any, config: Any = None) -> Any:
        config = config or self.config
        if self.is_async:
            return await self.graph.ainvoke(input, config, durability=self.durability)
        return self.graph.invoke(input, config, durability=self.durability)

    async def state(self, config: Any = None, **options: Any) -> Any:
        if self.is_async:
            return await self.graph.aget_state(config or self.config, **options)
        return self.graph.get_state(config or self.config, **options)

    async def history(self) -> list[Any]:
        if self.is_async:
            return [state async for state in self.graph.aget_state_history(self.config)]
        return list(self.graph.get_state_history(self.config))

    async def update(self, config: Any, values: Any, **options: Any) -> Any:
        if self.is_async:
            return await self.graph.aupdate_state(config or self.config, values, **options)
        return self.graph.update_state(config or self.config, values, **options)


Script = Callable[[Runner], Awaitable[list[Any]]]
SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    SCRIPTS[function.__name__] = function
    return function


# -- conversations -------------------------------------------------------------
#
# All messages have ids: LangGraph assigns missing ids while messages are on their way to the saver,
# so whether they are stored is not deterministic.


def agent(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    count = len(state["messages"])
    id = f"ai{count}"
    if isinstance(last, HumanMessage) and "look" in str(last.content):
        call = {"name": "look", "args": {"q": last.content}, "id": f"c{count}"}
        usage = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}
        return {"messages": [AIMessage("", id=id, tool_calls=[call], usage_metadata=usage)]}
    return {"messages": [AIMessage(f"answer {count} – äöü 😀", id=id)]}


def tools(state: MessagesState) -> dict[str, Any]:
    calls = state["messages"][-1].tool_calls
    return {
        "messages": [
            ToolMessage("found", id="of " + call["id"], tool_call_id=call["id"], artifact={"raw": b"\0"})
            for call in calls
        ]
    }


def route(state: MessagesState) -> str:
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


def chat() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", route, ["tools", END])
    builder.add_edge("tools", "agent")
    return builder


@script
async def chat_loop(run: Runner) -> list[Any]:
    run.compile(chat())
    results = []
    for turn in ("hello", "please look", "thanks"):
        results.append(await run.invoke({"messages": [HumanMessage(turn, id=turn)]}))
    first = (await run.state()).values["messages"][0]
    results.append(await run.update(None, {"messages": [RemoveMessage(id=first.id)]}))
    results.append(await run.invoke({"messages": [{"role": "user", "content": "now?", "id": "n"}]}))
    return results


@script
async def static_breakpoints(run: Runner) -> list[Any]:
    run.compile(chat(), interrupt_before=["tools"])
    results = [await run.invoke({"messages": [HumanMessage("look", id="look")]})]
    results.append((await run.state()).next)
    results.append(await run.invoke(None))
    return results


@script
async def time_travel(run: Runner) -> list[Any]:
    run.compile(chat())
    await run.invoke({"messages": [HumanMessage("one", id="h1")]})
    await run.invoke({"messages": [HumanMessage("two", id="h2")]})
    history = await run.history()
    results = [len(history)]
    # Replay from the middle, then a fork with another text, then continue along the fork.
    middle = history[len(history) // 2]
    results.append(await run.invoke(None, middle.config))
    fork = await run.update(middle.config, {"messages": [HumanMessage("other", id="h3")]})
    results.append(await run.invoke(None, fork))
    results.append(await run.invoke({"messages": [HumanMessage("three", id="h4")]}))
    for state in history:
        again = await run.state(state.config)
        results.append((again.values, again.next, again.metadata))
    return results


# -- parallel ------------------------------------------------------------------


class Sum(TypedDict, total=False):
    items: list[int]
    parts: Annotated[list[str], operator.add]
    total: str


@script
async def parallel_sends(run: Runner) -> list[Any]:
    def fan(state: Sum) -> list[Send]:
        return [Send("work", {"item": item, "tags": {"a"}}) for item in state["items"]]

    def work(state: dict[str, Any]) -> dict[str, Any]:
        return {"parts": [f"{state['item']}-{sorted(state['tags'])}"]}

    builder = StateGraph(Sum)
    builder.add_node("plan", lambda state: {})
    builder.add_node("work", work)
    builder.add_node("sum", lambda state: {"total": ",".join(state["parts"])})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan, ["work"])
    builder.add_edge("work", "sum")
    run.compile(builder)
    results = [await run.invoke({"items": list(range(12))})]
    results.append(await run.invoke({"items": [1, 2]}))
    return results


@script
async def join_and_defer(run: Runner) -> list[Any]:
    # LangGraph passes the live set of a join to the saver when the previous put has ended; if that
    # is not awaited, the set grows meanwhile and the stored part is not deterministic.
    if run.durability == "async":
        run.durability = "sync"
    builder = StateGraph(Sum)
    builder.add_node("a", lambda state: {"parts": ["a"]})
    builder.add_node("b", lambda state: {"parts": ["b"]})
    builder.add_node("b2", lambda state: {"parts": ["b2"]})
    builder.add_node("both", lambda state: {"parts": ["both"]})
    builder.add_node("late", lambda state: {"total": str(len(state["parts"]))}, defer=True)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "b2")
    builder.add_edge(["a", "b2"], "both")
    builder.add_edge("a", "late")
    builder.add_edge("both", "late")
    run.compile(builder, interrupt_before=["both"])
    results = [await run.invoke({"parts": []})]
    results.append(await run.invoke(None))
    return results


@script
async def commands(run: Runner) -> list[Any]:
    def first(state: Sum) -> Command[Any]:
        return Command(goto=["second", Send("third", {"n": 3})], update={"parts": ["first"]})

    builder = StateGraph(Sum)
    builder.add_node("first", first, destinations=("second", "third"))
    builder.add_node("second", lambda state: {"parts": Overwrite(["second alone"])})
    builder.add_node("third", lambda state: {"total": str(state["n"])})
    builder.add_edge(START, "first")
    run.compile(builder)
    results = [await run.invoke({"parts": ["start"]})]
    results.append(await run.invoke(Command(goto="second", update={"items": [9]})))
    return results


# -- interrupts ----------------------------------------------------------------


class Form(TypedDict, total=False):
    name: str
    age: int
    log: Annotated[list[str], operator.add]


def ask(state: Form) -> dict[str, Any]:
    name = interrupt({"question": "name?"})
    age = interrupt({"question": "age?", "name": name})
    return {"name": name, "age": age, "log": [f"{name}:{age}"]}


def form() -> Any:
    builder = StateGraph(Form)
    builder.add_node("ask", ask)
    builder.add_node("other", lambda state: {"log": ["other"]})
    builder.add_node("done", lambda state: {"log": ["done"]})
    builder.add_edge(START, "ask")
    builder.add_edge(START, "other")
    builder.add_edge(["ask", "other"], "done")
    return builder


@script
async def two_questions(run: Runner) -> list[Any]:
    run.compile(form())
    results = [await run.invoke({"log": ["start"]})]
    results.append((await run.state()).tasks)
    results.append(await run.invoke(Command(resume="Ada")))
    results.append((await run.state()).tasks)
    results.append(await run.invoke(Command(resume=36)))
    # The same interrupts in a second run, answered by id.
    results.append(await run.invoke({"log": ["again"]}))
    id = (await run.state()).tasks[0].interrupts[0].id
    results.append(await run.invoke(Command(resume={id: "Bob"})))
    results.append(await run.invoke(Command(resume=0, update={"log": ["with update"]})))
    return results


@script
async def nested_subgraphs(run: Runner) -> list[Any]:
    inner = StateGraph(Form)
    inner.add_node("before", lambda state: {"log": ["before"]})
    inner.add_node("ask", ask)
    inner.add_edge(START, "before")
    inner.add_edge("before", "ask")
    middle = StateGraph(Form)
    middle.add_node("enter", lambda state: {"log": ["enter"]})
    middle.add_node("inner", inner.compile())
    middle.add_edge(START, "enter")
    middle.add_edge("enter", "inner")
    outer = StateGraph(Form)
    outer.add_node("middle", middle.compile())
    outer.add_node("end", lambda state: {"log": ["end"]})
    outer.add_edge(START, "middle")
    outer.add_edge("middle", "end")
    run.compile(outer)
    results = [await run.invoke({"log": ["start"]})]
    results.append(await run.state(subgraphs=True))
    results.append(await run.invoke(Command(resume="Ada")))
    results.append(await run.state(subgraphs=True))
    results.append(await run.invoke(Command(resume=36)))
    return results


@script
async def persistent_subgraph(run: Runner) -> list[Any]:
    inner = StateGraph(Form)
    inner.add_node("count", lambda state: {"age": state.get("age", 0) + 1})
    inner.add_edge(START, "count")
    compiled = inner.compile(checkpointer=True)
    outer = StateGraph(Form)
    outer.add_node("inner", compiled)
    outer.add_edge(START, "inner")
    run.compile(outer)
    return [await run.invoke({"log": [str(turn)]}) for turn in range(3)]


@script
async def failure_and_retry(run: Runner) -> list[Any]:
    broken = [True]

    def fragile(state: Form) -> dict[str, Any]:
        if broken[0]:
            raise ValueError("not yet")
        return {"log": ["worked"]}

    builder = StateGraph(Form)
    builder.add_node("good", lambda state: {"log": ["good"]})
    builder.add_node("fragile", fragile)
    builder.add_edge(START, "good")
    builder.add_edge("good", "fragile")
    run.compile(builder)
    results: list[Any] = []
    try:
        await run.invoke({"log": ["start"]})
    except ValueError as error:
        results.append(repr(error))
    results.append((await run.state()).tasks)
    broken[0] = False
    results.append(await run.invoke(None))
    return results


@script
async def update_state(run: Runner) -> list[Any]:
    run.compile(form())
    await run.update(None, {"log": ["by hand"]}, as_node="other")
    await run.update(None, {"name": "x", "log": ["as ask"]}, as_node="ask")
    results = [(await run.state()).next]
    results.append(await run.invoke(None))
    await run.update(None, None, as_node=END)
    results.append((await run.state()).values)
    return results


# -- functional API ------------------------------------------------------------


@script
async def functional(run: Runner) -> list[Any]:
    calls: list[int] = []

    if run.is_async:

        @task
        async def double(n: int) -> int:
            calls.append(n)
            return n * 2

        @entrypoint(checkpointer=run.saver)
        async def flow(n: int, *, previous: Any = None) -> Any:
            doubled = [await double(i) for i in range(n)]
            extra = interrupt("how much more?")
            total = sum(doubled) + extra + (previous or 0)
            return entrypoint.final(value={"total": total}, save=total)

    else:

        @task
        def double(n: int) -> int:  # type: ignore[misc]
            calls.append(n)
            return n * 2

        @entrypoint(checkpointer=run.saver)
        def flow(n: int, *, previous: Any = None) -> Any:  # type: ignore[misc]
            doubled = [double(i).result() for i in range(n)]
            extra = interrupt("how much more?")
            total = sum(doubled) + extra + (previous or 0)
            return entrypoint.final(value={"total": total}, save=total)

    run.graph = flow
    results = [await run.invoke(4)]
    results.append(await run.invoke(Command(resume=10)))
    results.append(await run.invoke(2))
    results.append(await run.invoke(Command(resume=1)))
    return [*results, calls]


# -- odd values ----------------------------------------------------------------


class Color(Enum):
    RED = "red"


class Place(BaseModel):
    name: str
    at: tuple[float, float] | None = None


@dataclass
class Box:
    size: int
    inside: Any = None


class Odd(TypedDict, total=False):
    value: Any
    seen: Annotated[list[Any], operator.add]


ODD_VALUES: list[Any] = [
    None,
    {1, 2},
    frozenset({"a"}),
    b"\x00\xff",
    {"nested": {"$": 1, 2: [None, {"deep": (1, 2)}]}},
    {(1, 2): "tuple key"},
    2**53 + 1,
    -(2**62),
    1e300,
    -0.0,
    "surrogate-free ünïcödé \x00 text",
    datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=timezone.utc),
    UUID(int=7),
    Decimal("1.50"),
    Color.RED,
    Place(name="here", at=(1.0, 2.0)),
    Box(3, {"x": [Decimal(1)]}),
    [HumanMessage("in a list", id="x"), {"m": AIMessage("in a dict", id="y")}],
    Send("somewhere", {"m": HumanMessage("z", id="z")}),
    Command(update={"a": 1}, goto=["b"]),
]


@script
async def odd_values(run: Runner) -> list[Any]:
    builder = StateGraph(Odd)
    builder.add_node("keep", lambda state: {"seen": [state["value"]]})
    builder.add_edge(START, "keep")
    run.compile(builder)
    results = []
    for value in ODD_VALUES:
        await run.invoke({"value": value})
        results.append((await run.state()).values["value"])
    return results


# -- delta channels ------------------------------------------------------------

if DeltaChannel is not None:

    def extend(state: list[Any], writes: Any) -> list[Any]:
        return [*state, *(item for write in writes for item in write)]

    class Log(TypedDict, total=False):
        log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=3)]
        other: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]
        turn: int

    @script
    async def delta_channels(run: Runner) -> list[Any]:
        builder = StateGraph(Log)
        for name in ("a", "b", "c"):
            builder.add_node(name, lambda state, name=name: {"log": [f"{name}{state['turn']}"]})
            builder.add_edge(START, name)
        builder.add_node("last", lambda state: {"other": [f"{len(state['log'])} so far"]})
        builder.add_edge(["a", "b", "c"], "last")
        run.compile(builder)
        results = []
        for turn in range(5):
            results.append(await run.invoke({"turn": turn, "log": [f"in{turn}"]}))
        history = await run.history()
        fork = history[len(history) // 2].config
        results.append(await run.invoke({"turn": 99}, fork))
        results.append(await run.invoke({"turn": 100}))
        return results
