"""A declaration (docs/graphs.md) as a LangGraph graph.

It proves that graph.json and graph.py of a corpus directory are the same graph before another
engine is compared with them: LangGraph runs both, and the results must not differ. It is only for
this purpose: it assumes that a declaration is valid.
"""

import asyncio
import builtins
import json
import operator
import urllib.request
from typing import Annotated

from expressions import evaluate
from langchain_core.runnables import RunnableLambda
from langgraph.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    Topic,
    UntrackedValue,
)
from langgraph.config import get_stream_writer
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, RetryPolicy, Send, interrupt
from scripted import ScriptedModel
from typing_extensions import TypedDict

TYPES = {"string": str, "number": int, "boolean": bool, "list": list, "object": dict, "any": object}
OPERATORS = {
    "add": operator.add,
    "merge": operator.or_,
    "max": max,
    "min": min,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
CHANNELS = {"any": AnyValue, "ephemeral": EphemeralValue, "untracked": UntrackedValue}


def channel(spec):
    """Returns the annotation of a channel."""
    reducer, typ = spec.get("reducer", "last"), TYPES[spec.get("type", "any")]
    if reducer == "messages":
        return Annotated[list, add_messages]
    if reducer == "topic":
        return Annotated[list, Topic(object, spec.get("accumulate", False))]
    if reducer in CHANNELS:
        return Annotated[typ, CHANNELS[reducer]]
    if reducer in OPERATORS:
        empty = (lambda: spec["default"]) if "default" in spec else typ
        return Annotated[typ, BinaryOperatorAggregate(empty, OPERATORS[reducer])]
    return typ


def schema(name, state, keys=None):
    return TypedDict(name, {key: channel(state[key]) for key in keys or state}, total=False)


def choose(routes, scope):
    """Returns the target of the first route whose condition holds, or an empty list."""
    for route in routes:
        if evaluate(route.get("when", True), scope):
            return route["to"]
    return []


def sends(spec, scope):
    name = spec.get("as", "item")
    return [
        Send(spec["to"], evaluate(spec.get("arg", "{{%s}}" % name), {**scope, name: element}))
        for element in evaluate(spec["over"], scope)
    ]


def result(spec, scope):
    """Returns the result of a node that has `update` and perhaps `goto`."""
    update = evaluate(spec["update"], scope) if "update" in spec else None
    if "goto" not in spec:
        return update
    graph = Command.PARENT if spec.get("graph") == "parent" else None
    return Command(graph=graph, update=update, goto=evaluate(spec["goto"], scope))


# One function for each kind: from its declaration to a function of the state.


def make_set(spec, graphs):
    return lambda state: result(spec, state)


def make_interrupt(spec, graphs):
    def ask(state):
        answers = []
        for question in spec["ask"]:
            answers.append(interrupt(evaluate(question, {**state, "answers": answers})))
        return result(spec, {**state, "answers": answers})

    return ask


def make_branch(spec, graphs):
    return lambda state: Command(goto=choose(spec["routes"], state))


def make_fanout(spec, graphs):
    return lambda state: Command(goto=sends(spec, state))


def make_sleep(spec, graphs):
    async def sleep(state):
        await asyncio.sleep(spec["ms"] / 1000)
        return result(spec, state)

    return sleep


def make_fail(spec, graphs):
    left = [spec.get("times")]

    async def fail(state):
        await asyncio.sleep(spec.get("delay_ms", 0) / 1000)
        if left[0] == 0:
            return None
        if left[0] is not None:
            left[0] -= 1
        raise getattr(builtins, spec["type"])(evaluate(spec["error"], state))

    return fail


def make_script(spec, graphs):
    to = spec.get("channel", "messages")
    stream = spec.get("stream", {})

    async def reply(state):
        replies = spec["replies"]
        chosen = next(item for item in replies if evaluate(item.get("when", True), state))
        chosen = {key: evaluate(chosen[key], state) for key in chosen if key != "when"}
        await asyncio.sleep(chosen.get("delay_ms", 0) / 1000)
        model = ScriptedModel(reply=chosen, stream_by=stream.get("by"), delay=stream.get("delay_ms", 0) / 1000)
        return {to: [await model.ainvoke(state[to])]}

    return reply


def make_subgraph(spec, graphs):
    inner = graphs[spec["graph"]]
    memory = {"inherit": None, "own": True, "none": False}[spec.get("memory", "inherit")]
    graph = build(inner, memory, graphs)
    if "input" not in spec and "update" not in spec:
        return graph

    async def run(state):
        answer = await graph.ainvoke(evaluate(spec["input"], state))
        return evaluate(spec["update"], {**state, "result": answer})

    return run


def make_http(spec, graphs):
    def ask(state):
        body = json.dumps(evaluate(spec["body"], state)).encode() if "body" in spec else None
        headers = {"Content-Type": "application/json"} | evaluate(spec.get("headers", {}), state)
        request = urllib.request.Request(evaluate(spec["url"], state), body, headers, method=spec.get("method", "GET"))
        with urllib.request.urlopen(request) as response:
            answer = {"status": response.status, "headers": dict(response.headers), "body": json.loads(response.read())}
        return result(spec, {**state, "response": answer})

    return ask


def emitting(spec, action):
    """Wraps a node that sends its custom events when it starts."""
    if "emit" not in spec:
        return action

    async def run(state):
        writer = get_stream_writer()
        for value in spec["emit"]:
            writer(evaluate(value, state))
        answer = action(state)
        return await answer if asyncio.iscoroutine(answer) else answer

    return run


def retry_policy(spec):
    if spec is None:
        return None
    types = tuple(getattr(builtins, name) for name in spec["on"])
    return RetryPolicy(
        max_attempts=spec["attempts"],
        initial_interval=spec.get("delay_ms", 500) / 1000,
        backoff_factor=spec.get("backoff", 2),
        jitter=False,
        retry_on=types,
    )


def asynchronous(action):
    async def run(state):
        answer = action(state)
        return await answer if asyncio.iscoroutine(answer) else answer

    return run


def add_node(builder, name, spec, graphs, state):
    action = emitting(spec, globals()["make_" + spec["kind"]](spec, graphs))
    options = {"defer": spec.get("defer", False), "retry_policy": retry_policy(spec.get("retry"))}
    if "timeout_ms" in spec:
        options["timeout"] = spec["timeout_ms"] / 1000
        action = asynchronous(action)
    if "metadata" in spec:
        options["metadata"] = spec["metadata"]
    if spec["kind"] != "subgraph" and "input" in spec:
        options["input_schema"] = schema("Input_" + name, state, spec["input"])
    builder.add_node(name, action, **options)


def targets(routes):
    ends = {}
    for route in routes:
        to = route["to"]
        ends.update(dict.fromkeys([to] if isinstance(to, str) else to))
    return list(ends)


def add_edge(builder, edge, number):
    if isinstance(edge, list):
        builder.add_edge(*edge)
    elif "to" in edge:
        builder.add_edge(edge["from"], edge["to"])
    else:
        if "routes" in edge:
            routes = edge["routes"]
            path, ends = lambda state: choose(routes, state), targets(routes)
        else:
            fanout = edge["fanout"]
            path, ends = lambda state: sends(fanout, state), [fanout["to"]]
        # Each needs a unique name.
        path = RunnableLambda(path, name=f"path_{number}")
        builder.add_conditional_edges(edge["from"], path, ends)


def build(declaration, checkpointer, graphs=None):
    state = declaration["state"]
    graphs = {**(graphs or {}), **declaration.get("graphs", {})}
    options = {}
    for key, option in (("input", "input_schema"), ("output", "output_schema")):
        if key in declaration:
            options[option] = schema(key, state, declaration[key])
    builder = StateGraph(schema("State", state), **options)
    for name, spec in declaration["nodes"].items():
        add_node(builder, name, spec, graphs, state)
    for number, edge in enumerate(declaration.get("edges", [])):
        add_edge(builder, edge, number)
    names = ("interrupt_before", "interrupt_after")
    stops = {name: declaration[name] for name in names if name in declaration}
    graph = builder.compile(checkpointer=checkpointer, **stops)
    if "recursion_limit" in declaration:
        graph = graph.with_config(recursion_limit=declaration["recursion_limit"])
    return graph
