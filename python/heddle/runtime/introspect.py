"""Operations on a graph other than runs: updates, drawings, subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from langgraph.pregel import Pregel
from langgraph.types import StateUpdate

from heddle.runtime import structure
from heddle.runtime.graphs import bind, user_of
from heddle.runtime.link import Call
from heddle.runtime.render import render
from heddle.runtime.runs import command_of
from heddle.runtime.saver import Scope

if TYPE_CHECKING:
    from heddle.runtime.worker import Reply, Worker


def _config(call: Call) -> Any:
    config: dict[str, Any] = call.member("config") or {}
    conf = config.setdefault("configurable", {})
    if call.head.get("thread_id"):
        conf.setdefault("thread_id", call.head["thread_id"])
    for name in ("checkpoint_id", "checkpoint_ns", "checkpoint_map"):
        if call.head.get(name):
            conf[name] = call.head[name]
    if (user := conf.get("langgraph_auth_user")) is not None:
        conf["langgraph_auth_user"] = user_of(user)
    return config


def _update(update: dict[str, Any]) -> StateUpdate:
    command = update.get("command")
    values: Any = update.get("values") if command is None else command_of(command)
    return StateUpdate(values, update.get("as_node"), update.get("task_id"))


async def update(worker: Worker, call: Call) -> Reply:
    """Steps of a state update, written as the graph itself would write them."""
    entry = worker.graph(call.head["graph"])
    scope = Scope(worker.link, call.number, str(call.head.get("thread_id") or ""))
    config = _config(call)
    config["configurable"].setdefault("checkpoint_ns", "")
    steps = [[_update(each) for each in step] for step in call.member("supersteps")]
    async with entry.open(config, scope, "threads.update") as graph:
        bound = bind(graph, entry.id, scope, worker.serde)
        try:
            made = await bound.abulk_update_state(config, steps)
        finally:
            await scope.settle()
    conf = made["configurable"]
    report = {
        "checkpoint_ns": conf.get("checkpoint_ns", ""),
        "checkpoint_id": conf.get("checkpoint_id"),
        "checkpoint_map": conf.get("checkpoint_map"),
    }
    return orjson.dumps(report), ()


async def draw(worker: Worker, call: Call) -> Reply:
    entry = worker.graph(call.head["graph"])
    config = _config(call)
    scope = Scope(worker.link, call.number, "")
    async with entry.open(config, scope, "assistants.read") as graph:
        bound = bind(graph, entry.id, scope, worker.serde)
        drawn = (await bound.aget_graph(config, xray=call.head.get("xray") or False)).to_json()
    for node in drawn["nodes"]:
        if isinstance(node.get("data"), dict):
            node["data"].pop("id", None)
    return b"{}", (render(drawn),)


async def subgraphs(worker: Worker, call: Call) -> Reply:
    entry = worker.graph(call.head["graph"])
    config = _config(call)
    scope = Scope(worker.link, call.number, "")
    async with entry.open(config, scope, "assistants.read") as graph:
        found = {
            name: structure.schemas(each)
            for name, each in graph.get_subgraphs(
                namespace=call.head.get("namespace"),
                recurse=bool(call.head.get("recurse")),
            )
            if isinstance(each, Pregel)
        }
    return b"{}", (render(found),)
