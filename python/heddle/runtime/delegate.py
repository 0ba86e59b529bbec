"""Calls other assistants of the server from a graph."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, cast

import orjson
from langgraph.config import get_config

from heddle.runtime.link import Answer
from heddle.runtime.render import render
from heddle.runtime.saver import Scope

current: ContextVar[Scope] = ContextVar("heddle_scope")


class DelegateError(RuntimeError):
    """The other assistant's run failed.

    ``status`` is the status of the run (``failed``, ``interrupted``, ``cancelled``); ``interrupts``
    are those of an interrupted run.
    """

    def __init__(self, status: str, message: str, interrupts: list[Any]) -> None:
        super().__init__(message)
        self.status = status
        self.interrupts = interrupts


class Assistant:
    """An assistant or graph of the server; it runs in the same thread, with its own namespace."""

    def __init__(self, assistant_id: str) -> None:
        self.id = assistant_id

    async def ainvoke(self, input: Any) -> Any:
        """Runs it with this input; returns its last values."""
        scope, head, blob = self._prepare(input)
        answer = scope.call(head, (blob,))
        try:
            return self._output(await answer)
        except asyncio.CancelledError:
            scope.link.give_up(answer)
            raise

    def invoke(self, input: Any) -> Any:
        """As `ainvoke`, for plain functions."""
        scope, head, blob = self._prepare(input)
        return self._output(scope.call_sync(head, (blob,)))

    def _prepare(self, input: Any) -> tuple[Scope, dict[str, Any], bytes]:
        scope = current.get(None)
        if scope is None:
            raise RuntimeError("an assistant can be called only from a node of a run")
        head = {
            "op": "delegate",
            "call": scope.number,
            "assistant": self.id,
            "input": {"$blob": 0},
            "key": scope.next_key(_place()),
        }
        return scope, head, render(input)

    def _output(self, answer: Answer) -> Any:
        status = cast(str, answer.head.get("status"))
        if status != "done":
            error = answer.head.get("error") or {}
            text = error.get("message") or f"its run is {status}"
            questions = answer.head.get("interrupts") or []
            raise DelegateError(status, f'assistant "{self.id}": {text}', questions)
        return orjson.loads(answer.blobs[0]) if answer.blobs else None


def _place() -> str:
    """The calling task: the same when the run is retried."""
    try:
        return str(get_config().get("configurable", {}).get("checkpoint_ns") or "")
    except RuntimeError:
        return ""


def assistant(assistant_id: str) -> Assistant:
    """Another assistant, by its id or its graph's name, to be called from a node.

    It runs as a separate run in the same thread, with its own checkpoints; it may be native, Python
    or TypeScript.
    """
    return Assistant(assistant_id)
