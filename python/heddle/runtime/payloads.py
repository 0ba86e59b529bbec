"""Filters events that contain configurations and tasks for clients."""

from __future__ import annotations

from typing import Any

# `configurable` holds all members of the request, including secrets of the graph's code.
_SHOWN = (
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "checkpoint_map",
    "run_id",
    "graph_id",
    "assistant_id",
)

MODES = frozenset(("debug", "checkpoints", "tasks"))


def tidy(mode: str, chunk: Any) -> Any:
    """A chunk of one of MODES without private members."""
    if not isinstance(chunk, dict):
        return chunk
    if mode == "checkpoints":
        return _checkpoint(chunk)
    if mode == "tasks":
        return _task(chunk)
    payload = chunk.get("payload")
    if not isinstance(payload, dict):
        return chunk
    make = _checkpoint if chunk.get("type") == "checkpoint" else _task
    return {**chunk, "payload": make(payload)}


def _checkpoint(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        **payload,
        "config": _config(payload.get("config")),
        "parent_config": _config(payload.get("parent_config")),
        "tasks": [
            {**_task(task), "state": _config(task["state"])} if isinstance(task.get("state"), dict) else _task(task)
            for task in payload.get("tasks", ())
        ],
    }


def _config(config: Any) -> Any:
    if not isinstance(config, dict) or "configurable" not in config:
        return config
    conf = config["configurable"]
    return {"configurable": {name: conf[name] for name in _SHOWN if name in conf}}


def _task(task: dict[str, Any]) -> dict[str, Any]:
    interrupts = task.get("interrupts")
    if not interrupts:
        return task
    return {**task, "interrupts": [_interrupt(each) for each in interrupts]}


def _interrupt(interrupt: Any) -> Any:
    if isinstance(interrupt, dict) and interrupt.get("response_schema", 0) is None:
        return {k: v for k, v in interrupt.items() if k != "response_schema"}
    return interrupt
