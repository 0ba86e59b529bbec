"""The worker: says hello, loads the project, and does what the server asks for."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import socket
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson

from heddle._core import __version__
from heddle.runtime import loader, structure
from heddle.runtime.errors import describe, log
from heddle.runtime.graphs import Entry, Graph
from heddle.runtime.link import Call, Link, ServerError
from heddle.runtime.render import render
from heddle.runtime.runs import Run
from heddle.runtime.saver import Scope
from heddle.serializer import CanonicalSerializer

PROTOCOL = 1

Reply = tuple[bytes, tuple[bytes, ...]]
_NOTHING: Reply = (b"{}", ())


def connect(environment: dict[str, str]) -> socket.socket:
    """To the server that the environment names."""
    if path := environment.get("HEDDLE_RUNTIME_SOCKET"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(path)
        return sock
    address = environment.get("HEDDLE_RUNTIME_ADDRESS")
    if not address:
        raise SystemExit(
            "neither HEDDLE_RUNTIME_SOCKET nor HEDDLE_RUNTIME_ADDRESS is set: a worker is "
            "started by `heddle serve`, or given the address of a server"
        )
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Worker:
    """All of a worker's state."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.serde = CanonicalSerializer()
        self.link = Link(sock, loop, self._on_call)
        self.folder = "."
        self.project: dict[str, Any] = {}
        self._graphs: dict[str, Entry] = {}
        self._failures: dict[str, dict[str, Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_draining = False
        self._ops: dict[str, Callable[[Call], Awaitable[Reply]]] = {}

    # -- life ------------------------------------------------------------------

    async def serve(self, key: str) -> None:
        """Until the server goes, or has drained the worker."""
        answer = await self.link.call(
            orjson.dumps(
                {
                    "op": "hello",
                    "protocol": PROTOCOL,
                    "runtime": "python",
                    "version": __version__,
                    "language": platform.python_version(),
                    "langgraph": _version("langgraph"),
                    "pid": os.getpid(),
                    "key": key,
                }
            )
        )
        self.project = answer.head["project"]
        self.folder = self.project["folder"]
        await self.link.call(render(await self._load()))
        await self.link.closed

    async def _load(self) -> dict[str, Any]:
        """Loads everything; says what is there, and what failed and why."""
        loader.prepare(self.folder, self.project.get("dependencies") or [])
        graphs: dict[str, Any] = {}
        for graph_id, spec in (self.project.get("graphs") or {}).items():
            try:
                source = loader.Source(graph_id, loader.load(self.folder, spec["path"]))
                self._graphs[graph_id] = Entry(source)
                graphs[graph_id] = await self._describe(self._graphs[graph_id])
            except (Exception, SystemExit) as error:
                self._graphs.pop(graph_id, None)
                told = describe(error)
                self._failures[graph_id] = told
                graphs[graph_id] = {"error": told}
                log(
                    f"graph {graph_id} ({spec.get('path')}) cannot be loaded\n"
                    f"{told.get('traceback') or told['message']}"
                )
        return {"op": "ready", "graphs": graphs}

    async def _describe(self, entry: Entry) -> dict[str, Any]:
        if entry.compiled is not None:
            return _told(entry.compiled)
        config: dict[str, Any] = {"configurable": {}, "metadata": {}, "tags": []}
        scope = Scope(self.link, 0, "")
        try:
            async with entry.open(config, scope, "assistants.read") as graph:
                return _told(graph)
        except Exception as error:
            # It may need what only a run has.
            told = describe(error)
            log(
                f"graph {entry.id} cannot be made without a run: {told['type']}: {told['message']}"
            )
            return {"structure": None, "schemas": None, "runtime_only": True}

    def graph(self, graph_id: str) -> Entry:
        entry = self._graphs.get(graph_id)
        if entry is not None:
            return entry
        failure = self._failures.get(graph_id)
        if failure is not None:
            raise loader.LoadError(
                f'graph "{graph_id}" cannot be loaded: {failure["type"]}: {failure["message"]}'
            )
        raise loader.LoadError(f'there is no graph "{graph_id}"')

    # -- what the server asks for ------------------------------------------------

    def _on_call(self, call: Call) -> None:
        op = call.head.get("op")
        if op == "ping":
            self.link.answer(call)
        elif op == "run":
            self._spawn(call, Run(self, call).work())
        elif op == "drain":
            self._spawn(call, self._drain(call))
        else:
            self._spawn(call, self._work(call))

    def _spawn(self, call: Call, work: Any) -> None:
        task: asyncio.Task[None] = self.loop.create_task(work)
        call.cancel = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, call: Call) -> None:
        try:
            op = self._ops.get(call.head.get("op", ""))
            if op is None:
                raise LookupError(f"unknown operation {call.head.get('op')!r}")
            head, blobs = await op(call)
            self.link.answer(call, head, blobs)
        except asyncio.CancelledError:
            self.link.refuse(call, {"type": "CancelledError", "message": "cancelled"})
        except Exception as error:
            self.link.refuse(call, describe(error))

    async def _drain(self, call: Call) -> None:
        current = asyncio.current_task()
        while others := [task for task in self._tasks if task is not current]:
            await asyncio.wait(others)
        self.link.answer(call)
        await self.link.flushed()
        self.link.close()


def _told(graph: Graph) -> dict[str, Any]:
    return {
        "structure": structure.structure(graph),
        "schemas": structure.schemas(graph),
        "runtime_only": False,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def main() -> int:
    """The program `python -m heddle.runtime`."""
    environment = dict(os.environ)
    # Nothing that the worker starts should have it.
    key = os.environ.pop("HEDDLE_RUNTIME_KEY", "")
    loop = _new_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_run(connect(environment), loop, key))
    finally:
        loop.close()


async def _run(
    sock: socket.socket, loop: asyncio.AbstractEventLoop, key: str
) -> int:
    worker = Worker(sock, loop)
    try:
        await worker.serve(key)
    except ServerError as error:
        log(f"the server refused the worker: {error}")
        return 1
    return 0


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: it is faster."""
    try:
        module: Any = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = module.new_event_loop()
    return loop
