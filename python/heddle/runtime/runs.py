"""Runs: streams a graph and sends its events as chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
from langchain_core.messages import AIMessageChunk
from langgraph.types import Command, Send

from heddle.runtime.delegate import current
from heddle.runtime.errors import describe, log
from heddle.runtime.graphs import Graph, bind, context_of, user_of
from heddle.runtime.link import Call
from heddle.runtime.loopback import calling
from heddle.runtime.payloads import MODES, tidy
from heddle.runtime.render import render
from heddle.runtime.saver import Scope

if TYPE_CHECKING:
    from heddle.runtime.worker import Worker

_INTERRUPT = "__interrupt__"
_ALWAYS = ("updates", "values")  # the result of the run is read from these
_heads: dict[tuple[str, str], bytes] = {}
_MAX_HEADS = 1000


def piece_head(mode: str, ns: str) -> bytes:
    """`{"mode":…,"ns":…}`: only a few distinct ones occur."""
    if ns:
        return orjson.dumps({"mode": mode, "ns": ns})
    head = _heads.get((mode, ns))
    if head is None:
        head = orjson.dumps({"mode": mode, "ns": ns})
        if len(_heads) < _MAX_HEADS:
            _heads[mode, ns] = head
    return head


def command_of(command: dict[str, Any]) -> Command[Any]:
    """Converts a command of the HTTP API to LangGraph's."""
    goto = command.get("goto")
    if goto is None:
        goto = []
    elif not isinstance(goto, list):
        goto = [goto]
    update = command.get("update")
    if isinstance(update, list) and all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in update
    ):
        update = [tuple(each) for each in update]
    return Command(
        update=update,
        resume=command.get("resume"),
        goto=[each if isinstance(each, str) else _send(each) for each in goto],
    )


def says_nothing(command: dict[str, Any]) -> bool:
    """LangGraph fails with such a command; the thread continues from its state instead."""
    return command.get("resume") is None and not command.get("update") and not command.get("goto")


def _send(value: dict[str, Any]) -> Send:
    for name in ("input", "arg", "args"):
        if name in value:
            return Send(value["node"], value[name])
    return Send(value["node"], None)


class Run:
    """One `run` call."""

    def __init__(self, worker: Worker, call: Call) -> None:
        head = call.head
        self._worker = worker
        self._call = call
        self._scope = Scope(worker.link, call.number, str(head.get("thread_id") or ""))
        self._modes = frozenset(head.get("modes") or ())
        self._with_subgraphs = bool(head.get("subgraphs"))
        self._latest: Any = None
        self._latest_text: bytes | None = None
        self._interrupts: list[Any] | None = None
        self._tokens = 0

    async def work(self) -> None:
        """Runs the graph; the call always ends with a response."""
        report: dict[str, Any]
        current.set(self._scope)
        calling.set(self._call.head.get("api"))
        try:
            await self._stream()
            report = {"status": "done" if self._interrupts is None else "interrupted"}
        except asyncio.CancelledError as error:
            # A node may also raise it itself.
            report = (
                {"status": "cancelled"}
                if self._call.is_cancelled
                else {"status": "failed", "error": self._describe(error)}
            )
        except Exception as error:
            report = {"status": "failed", "error": self._describe(error)}
        try:
            await self._scope.settle()
        except asyncio.CancelledError:
            report = {"status": "cancelled"}
        if self._tokens:
            report["tokens"] = self._tokens
        output = self._output()
        self._worker.link.answer(self._call, orjson.dumps(report), () if output is None else (output,))

    def _describe(self, error: BaseException) -> dict[str, Any]:
        report = describe(error)
        where = f" ({report['file']}:{report['line']})" if "file" in report else ""
        log(
            f"run {self._call.head.get('run_id')} of graph {self._call.head.get('graph')} "
            f"failed{where}\n{report.get('traceback') or report['message']}"
        )
        return report

    def _output(self) -> bytes | None:
        """The last values; with interrupts, as an interrupted `ainvoke` returns them."""
        latest = self._latest
        if self._interrupts and isinstance(latest, dict):
            return render({**latest, _INTERRUPT: self._interrupts})
        if self._latest_text is not None:
            return self._latest_text
        return None if latest is None else render(latest)

    async def _stream(self) -> None:
        head = self._call.head
        entry = self._worker.graph(head["graph"])
        config: Any = self._config()
        context = self._call.member("context")
        async with entry.open(config, self._scope, "threads.create_run", context) as graph:
            graph = bind(graph, entry.id, self._scope, self._worker.serde)
            arguments: Any = {
                "context": context_of(graph, context, config["configurable"]),
                "stream_mode": [*{*_ALWAYS, *self._modes} - {"events"}],
                "subgraphs": self._with_subgraphs or "messages" in self._modes,
                "output_keys": graph.output_channels,
                "interrupt_before": head.get("interrupt_before") or None,
                "interrupt_after": head.get("interrupt_after") or None,
                "durability": head.get("durability"),
            }
            if "events" in self._modes:
                await self._stream_events(graph, config, arguments)
                return
            stream: Any = graph.astream(self._input(), config, **arguments)
            async with aclosing(stream) as chunks:
                await self._take_all(chunks, bool(arguments["subgraphs"]))

    async def _take_all(self, chunks: AsyncIterator[Any], has_namespaces: bool) -> None:
        call = self._call
        if has_namespaces:
            async for ns, mode, chunk in chunks:
                self._take(ns, mode, chunk)
                if call.must_wait():
                    await call.wait()
        else:
            async for mode, chunk in chunks:
                self._take((), mode, chunk)
                if call.must_wait():
                    await call.wait()

    async def _stream_events(self, graph: Graph, config: Any, arguments: dict[str, Any]) -> None:
        """`events` is `astream_events`; the other modes are extracted from its events."""
        run_id = str(config.get("run_id") or "")
        stream: Any = graph.astream_events(self._input(), config, version="v2", **arguments)
        async with aclosing(stream) as events:
            async for event in events:
                if "langsmith:hidden" in (event.get("tags") or ()):
                    continue
                run_id = run_id or event["run_id"]
                if event["event"] == "on_chain_stream" and event["run_id"] == run_id:
                    chunk = event["data"]["chunk"]
                    if arguments["subgraphs"]:
                        self._take(*chunk)
                    else:
                        self._take((), *chunk)
                elif self._call.is_heard:
                    self._call.piece(piece_head("events", ""), (render(event),))
                if self._call.must_wait():
                    await self._call.wait()

    def _take(self, ns: tuple[str, ...], mode: str, chunk: Any) -> None:
        is_wanted = mode in self._modes and self._call.is_heard
        if mode == "messages":
            if isinstance(chunk[0], AIMessageChunk):
                self._tokens += 1
        elif ns:
            is_wanted = is_wanted and self._with_subgraphs
        elif mode == "values":
            self._latest = chunk
            self._latest_text = None
        elif mode == "updates" and isinstance(chunk, dict) and _INTERRUPT in chunk:
            self._interrupts = [*(self._interrupts or ()), *chunk[_INTERRUPT]]
        if not is_wanted:
            return
        text = render(tidy(mode, chunk) if mode in MODES else chunk)
        if mode == "values" and not ns:
            self._latest_text = text
        self._call.piece(piece_head(mode, "|".join(ns)), (text,))

    def _input(self) -> Any:
        command = self._call.member("command")
        if command is None or says_nothing(command):
            return self._call.member("input")
        return command_of(command)

    def _config(self) -> dict[str, Any]:
        head = self._call.head
        config: dict[str, Any] = self._call.member("config") or {}
        conf = config.setdefault("configurable", {})
        conf.setdefault("thread_id", self._scope.thread_id)
        for name in ("checkpoint_id", "checkpoint_ns", "checkpoint_map"):
            if head.get(name):
                conf[name] = head[name]
        conf.setdefault("graph_id", head["graph"])
        if head.get("assistant_id"):
            conf.setdefault("assistant_id", head["assistant_id"])
        if (user := conf.get("langgraph_auth_user")) is not None:
            conf["langgraph_auth_user"] = user_of(user)
        if head.get("attempt", 1) == 1 and head.get("run_id"):
            config["run_id"] = UUID(head["run_id"])
        return config
