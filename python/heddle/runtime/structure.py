"""Describes a graph: its structure, its schemas, its drawing."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import orjson
from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from pydantic import BaseModel, RootModel, create_model

_PREVIOUS = "__previous__"
_MAX_DEPTH = 20
# Members of `configurable` that LangGraph sets itself.
_HIDDEN = (
    "thread_id",
    "checkpoint_id",
    "checkpoint_ns",
    "thread_ts",
    "__pregel_resuming",
    "__pregel_task_id",
)

# Reducers that are recognized without the channel's type.
_OPERATORS: dict[Any, str] = {
    operator.add: "add",
    max: "max",
    min: "min",
}

Graph = Pregel[Any, Any, Any, Any]


def structure(graph: Graph, depth: int = 0) -> dict[str, Any]:
    """The structure that the server needs to read the graph's checkpoints."""
    subgraphs = dict(graph.get_subgraphs()) if depth < _MAX_DEPTH else {}
    is_functional = _PREVIOUS in graph.channels and not isinstance(graph, CompiledStateGraph)
    return {
        "kind": "functional" if is_functional else "graph",
        "channels": {
            name: type(channel).__name__ for name, channel in graph.channels.items() if isinstance(channel, BaseChannel)
        },
        "reducers": _reducers(graph),
        "initial": _initial(graph),
        "stream_channels": _names(graph.stream_channels_asis),
        "output_channels": _names(graph.output_channels),
        "input_channels": _names(graph.input_channels),
        "nodes": {
            name: {
                "triggers": [*node.triggers],
                "subgraph": _subgraph(subgraphs.get(name), depth),
                "deferred": _is_deferred(graph, name),
                "metadata": dict(node.metadata or {}),
                "checkpointer": _checkpointer(subgraphs.get(name)),
            }
            for name, node in graph.nodes.items()
        },
        "interrupt_before": _names(graph.interrupt_before_nodes),
        "interrupt_after": _names(graph.interrupt_after_nodes),
    }


def _reducers(graph: Graph) -> dict[str, str]:
    """Channels with a reducer that the server implements."""
    found: dict[str, str] = {}
    for name, channel in graph.channels.items():
        if isinstance(channel, BinaryOperatorAggregate):
            reducer = _reducer(channel)
            if reducer is not None:
                found[name] = reducer
    return found


def _reducer(channel: BinaryOperatorAggregate[Any]) -> str | None:
    function = channel.operator
    if function is add_messages:
        return "messages"
    empty = getattr(channel, "value", None)
    if function is operator.or_:
        return "merge" if isinstance(empty, dict) else "or" if empty is False else None
    if function is operator.and_:
        return "and" if empty is False else None
    return _OPERATORS.get(function)


def _initial(graph: Graph) -> dict[str, Any]:
    """The initial values of channels."""
    found: dict[str, Any] = {}
    for name, channel in graph.channels.items():
        if isinstance(channel, BaseChannel):
            try:
                value = channel.get()
                orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)
            except Exception:
                continue  # no value, or not JSON
            if value is not None:
                found[name] = value
    return found


def _names(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)


def _subgraph(graph: Any, depth: int) -> dict[str, Any] | None:
    return structure(graph, depth + 1) if isinstance(graph, Pregel) else None


def _checkpointer(graph: Any) -> bool | None:
    value = getattr(graph, "checkpointer", None)
    return value if isinstance(value, bool) else None


def _is_deferred(graph: Graph, name: str) -> bool:
    node = getattr(getattr(graph, "builder", None), "nodes", {}).get(name)
    return bool(getattr(node, "defer", False))


def schemas(graph: Graph) -> dict[str, Any]:
    """JSON Schemas; null where there is none, or where it cannot be described."""
    return {
        "input": _try(graph.get_input_jsonschema),
        "output": _try(graph.get_output_jsonschema),
        "state": _try(lambda: _state(graph)),
        "config": _try(lambda: _config(graph)),
        "context": _try(graph.get_context_jsonschema),
    }


def _try(make: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make()
    except Exception:
        return None


def _state(graph: Graph) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in graph.stream_channels_list:
        kind = getattr(graph.channels[name], "UpdateType", Any)
        fields[name] = (kind if _can_be_described(kind) else Any, None)
    model: type[BaseModel] = create_model(graph.get_name("State"), **fields)
    return model.model_json_schema()


def _can_be_described(kind: Any) -> bool:
    return _try(lambda: RootModel[kind].model_json_schema()) is not None


def _config(graph: Graph) -> dict[str, Any]:
    whole = graph.get_config_jsonschema()
    found = whole.get("properties", {}).get("configurable", {})
    if "$ref" in found:
        found = whole["$defs"][found["$ref"].rpartition("/")[2]]
    shown = dict(found)
    if "properties" in shown:
        shown["properties"] = {name: each for name, each in shown["properties"].items() if name not in _HIDDEN}
    if "$defs" in whole and "Configurable" not in str(shown.get("$ref")):
        others = {k: v for k, v in whole["$defs"].items() if v is not found}
        if others:
            shown["$defs"] = others
    return shown
