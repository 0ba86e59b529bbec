"""The worker: sends hello, loads the project, and serves calls of the server."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import inspect
import io
import os
import platform
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from heddle._core import __version__
from heddle.runtime import introspect, loader, loopback, structure
from heddle.runtime.app import HttpApp
from heddle.runtime.auth import CustomAuth, Refused, without_credentials
from heddle.runtime.errors import LoadError, describe, log
from heddle.runtime.frames import ProtocolError
from heddle.runtime.graphs import Entry, Graph
from heddle.runtime.lease import Lease
from heddle.runtime.link import Call, Link, ServerError
from heddle.runtime.render import render
from heddle.runtime.runs import Run
from heddle.runtime.saver import Scope
from heddle.runtime.watch import Files, Watchdog, wait_for_change
from heddle.serializer import CanonicalSerializer

PROTOCOL = 1
_STOP_LIMIT = 2.0  # seconds cancelled runs have to clean up when the server is gone
_MAKE_LIMIT = 20.0  # seconds a factory has to build a graph for inspection
_THREADS = 64  # for nodes that are plain functions

Reply = tuple[bytes, tuple[bytes, ...]]


def connect(environment: dict[str, str]) -> socket.socket:
    """Connects to the server named by the environment."""
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
        self._others: set[asyncio.Task[None]] = set()
        self._app: HttpApp | None = None
        self._broken: list[str] = []
        self._ops: dict[str, Callable[[Call], Awaitable[Reply]]] = {
            name: functools.partial(function, self)
            for name, function in (
                ("update", introspect.update),
                ("draw", introspect.draw),
                ("subgraphs", introspect.subgraphs),
            )
        }

    # -- lifetime --------------------------------------------------------------

    async def serve(self, key: str, on_ready: Callable[[], None] | None = None) -> None:
        """Runs until the server closes the connection, or has drained the worker."""
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
        if lease := answer.head.get("lease_ms"):
            Lease(self.link, lease / 1000).start()
        self.project = answer.head["project"]
        self.folder = self.project["folder"]
        self.serde = _serializer(self.project.get("serde") or {})
        if self.project.get("reload"):
            # Python would use stale bytecode for a file that was changed within the same second and
            # has the same length.
            sys.dont_write_bytecode = True
        since = time.time_ns()
        await self.link.call(render(await self._load()))
        if on_ready is not None:
            on_ready()
        if self.project.get("reload"):
            self._keep(self._watch_files(since))
        await self.link.closed

    async def stop(self) -> None:
        """Cancels running calls, because the server is gone."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_LIMIT)
        if self._app is not None:
            await self._app.stop()

    # -- loading ---------------------------------------------------------------

    async def _load(self) -> dict[str, Any]:
        """Loads everything; reports the loaded parts, and the failures with their reasons."""
        loader.prepare(self.folder, self.project.get("dependencies") or [])
        loopback.install()
        report: dict[str, Any] = {"op": "ready", "graphs": {}}
        for graph_id, spec in (self.project.get("graphs") or {}).items():
            path = spec["path"]
            report["graphs"][graph_id] = await self._try(
                f"graph {graph_id} ({path})",
                lambda: self._load_graph(graph_id, path),  # noqa: B023
            )
            if failure := report["graphs"][graph_id].get("error"):
                self._failures[graph_id] = failure
        for name, load in (
            ("auth", self._load_auth),
            ("app", self._load_app),
            ("embed", self._load_embed),
        ):
            if spec := self.project.get(name):
                path = spec["path"]
                report[name] = await self._try(f"{name} ({path})", lambda: load(path))  # noqa: B023
        return report

    async def _try(self, what: str, load: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        try:
            return await load()
        except (Exception, SystemExit) as error:
            report = describe(error)
            log(f"cannot load {what}\n{report.get('traceback') or report['message']}")
            self._broken.append(str(report.get("file", "")))
            return {"error": report}

    async def _import(self, path: str) -> Any:
        # On another thread: a module may run its own event loop when it is imported.
        return await self.loop.run_in_executor(None, loader.load, self.folder, path)

    async def _load_graph(self, graph_id: str, path: str) -> dict[str, Any]:
        entry = Entry(loader.Source(graph_id, await self._import(path)))
        report = await self._describe(entry)
        self._graphs[graph_id] = entry
        return report

    async def _load_auth(self, path: str) -> dict[str, Any]:
        auth = CustomAuth(await self._import(path))
        self._ops["authenticate"] = auth.authenticate
        self._ops["authorize"] = auth.authorize
        return auth.report()

    async def _load_app(self, path: str) -> dict[str, Any]:
        self._app = HttpApp(await self._import(path))
        await self._app.start()
        self._ops["request"] = self._app.request
        return self._app.report()

    async def _load_embed(self, path: str) -> dict[str, Any]:
        from heddle.runtime.embed import Embedder

        dims = (self.project.get("index") or {}).get("dims")
        self._ops["embed"] = Embedder(await self._import(path), dims).embed
        return {}

    async def _watch_files(self, since: int) -> None:
        named = [each["path"] for each in (self.project.get("graphs") or {}).values()]
        named += [self.project[name]["path"] for name in ("auth", "app", "embed") if self.project.get(name)]
        paths = [os.path.join(self.folder, each.rpartition(":")[0]) for each in named]
        named = [*map(os.path.normpath, paths), *self._broken]
        files = Files(self.folder, named, since)
        changed = await wait_for_change(files)
        await self.link.call(orjson.dumps({"op": "changed", "files": changed}))

    async def _describe(self, entry: Entry) -> dict[str, Any]:
        if entry.compiled is not None:
            return _told(entry.compiled)
        config: dict[str, Any] = {"configurable": {}, "metadata": {}, "tags": []}
        try:
            return await asyncio.wait_for(self._make(entry, config), _MAKE_LIMIT)
        except Exception as error:
            # It may need data that only a run has.
            report = describe(error)
            log(f"cannot build graph {entry.id} without a run: {report['type']}: {report['message']}")
            return {"structure": None, "schemas": None, "runtime_only": True}

    async def _make(self, entry: Entry, config: dict[str, Any]) -> dict[str, Any]:
        scope = Scope(self.link, 0, "")
        async with entry.open(config, scope, "assistants.read") as graph:
            return _told(graph)

    def graph(self, graph_id: str) -> Entry:
        entry = self._graphs.get(graph_id)
        if entry is not None:
            return entry
        failure = self._failures.get(graph_id)
        if failure is not None:
            raise LoadError(f'graph "{graph_id}" cannot be loaded: {failure["type"]}: {failure["message"]}')
        raise LoadError(f'no graph "{graph_id}"')

    # -- calls of the server -----------------------------------------------------

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

    def _spawn(self, call: Call, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        call.cancel = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        # Separate from the calls: draining does not wait for it.
        task = self.loop.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _work(self, call: Call) -> None:
        try:
            op = self._ops.get(call.head.get("op", ""))
            if op is None:
                raise LookupError(f"unknown operation {call.head.get('op')!r}")
            head, blobs = await op(call)
            self.link.answer(call, head, blobs)
        except asyncio.CancelledError:
            self.link.refuse(call, {"type": "CancelledError", "message": "cancelled"})
        except Refused as error:
            self.link.refuse(call, error.report())
        except Exception as error:
            report = describe(error)
            text = f"{call.head.get('op')} failed\n{report.get('traceback') or report['message']}"
            log(without_credentials(text, call.head.get("headers")))
            self.link.refuse(call, report)

    async def _drain(self, call: Call) -> None:
        current = asyncio.current_task()
        while others := [task for task in self._tasks if task is not current]:
            await asyncio.wait(others)
        if self._app is not None:
            await self._app.stop()
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


def _serializer(settings: dict[str, Any]) -> CanonicalSerializer:
    """Uses `checkpointer.serde` for values that the canonical encoding cannot express."""
    known = inspect.signature(JsonPlusSerializer.__init__).parameters
    arguments: dict[str, Any] = {}
    for name in ("allowed_json_modules", "allowed_msgpack_modules", "pickle_fallback"):
        if name in settings and name in known:
            value = settings[name]
            arguments[name] = [tuple(each) for each in value] if isinstance(value, list) else value
    return CanonicalSerializer(JsonPlusSerializer(**arguments))


def main() -> None:
    """The program `python -m heddle.runtime`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    environment = dict(os.environ)
    # Hide it from programs that the worker starts.
    key = os.environ.pop("HEDDLE_RUNTIME_KEY", "")
    loop = _new_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "heddle-node"))
    asyncio.set_event_loop(loop)
    status = loop.run_until_complete(_run(environment, loop, key))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of hanging nodes must not keep the process alive.
    os._exit(status)


async def _run(environment: dict[str, str], loop: asyncio.AbstractEventLoop, key: str) -> int:
    try:
        worker = Worker(connect(environment), loop)
    except OSError as error:
        log(f"cannot connect to the server: {error}")
        return 1
    try:
        await worker.serve(key, lambda: _settle(loop))
    except (ServerError, ProtocolError) as error:
        log(f"the worker ends: {error}")
        return 1
    finally:
        await worker.stop()
    return 0


def _settle(loop: asyncio.AbstractEventLoop) -> None:
    # Loaded objects stay: exempt them from garbage collection.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    Watchdog(loop).start()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop if it is installed: it is faster."""
    try:
        module: Any = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = module.new_event_loop()
    return loop
