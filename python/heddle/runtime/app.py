"""The project's own HTTP app (ASGI): requests that match no route of the server."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import unquote

import orjson

from heddle.runtime.errors import LoadError, log
from heddle.runtime.graphs import User
from heddle.runtime.link import Call
from heddle.runtime.loopback import ask_server, calling

Reply = tuple[bytes, tuple[bytes, ...]]
_STOP_LIMIT = 5.0  # seconds an app has to shut down
_MAX_DOCUMENT = 1 << 20  # bytes of an OpenAPI document
_SCHEMAS = b'"#/components/schemas/'
_NO_DOCUMENT: dict[str, Any] = {"paths": {}, "schemas": {}}


def _own_document(app: Any) -> dict[str, Any]:
    """FastAPI's document. Its schemas are renamed so that they do not collide with the server's."""
    text = orjson.dumps(app.openapi()).replace(_SCHEMAS, _SCHEMAS + b"App.")
    if len(text) > _MAX_DOCUMENT:
        raise ValueError(f"longer than {_MAX_DOCUMENT} bytes")
    document = orjson.loads(text)
    schemas = document.get("components", {}).get("schemas", {})
    return {
        "paths": document.get("paths", {}),
        "schemas": {f"App.{name}": schema for name, schema in schemas.items()},
    }


def _document_of_routes(app: Any) -> dict[str, Any]:
    """Paths and methods, for apps without a document."""
    paths: dict[str, Any] = {}
    for route in getattr(app, "routes", ()):
        path, methods = getattr(route, "path", None), getattr(route, "methods", None)
        if not isinstance(path, str) or not path.startswith("/") or not methods:
            continue
        operations = paths.setdefault(re.sub(r"\{(\w+):\w+\}", r"{\1}", path), {})
        for method in methods:
            if method != "HEAD":
                operations[method.lower()] = {"responses": {"default": {"description": "Answer"}}}
    return {"paths": paths, "schemas": {}}


def describe(app: Any) -> dict[str, Any]:
    """The paths and schemas of an app for /openapi.json."""
    try:
        if callable(getattr(app, "openapi", None)):
            return _own_document(app)
        return _document_of_routes(app)
    except Exception as error:  # the app works without a document
        log(f"the OpenAPI document of the HTTP app is omitted: {error}")
        return _NO_DOCUMENT


class HttpApp:
    """An ASGI app: Starlette, FastAPI, or any other."""

    def __init__(self, app: Any) -> None:
        if not callable(app):
            raise LoadError(f"{type(app).__name__} is not an ASGI app")
        self._app = app
        self._state: dict[str, Any] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._lifespan: asyncio.Task[None] | None = None
        self._has_stopped = asyncio.Event()
        self._wrapping: Any = None  # built on the first request for a route of the server

    def report(self) -> dict[str, Any]:
        routes = (getattr(each, "path", None) for each in getattr(self._app, "routes", ()))
        return {
            "routes": [path for path in routes if isinstance(path, str) and path],
            "middleware": bool(self._middleware()),
            "openapi": describe(self._app),
        }

    def _middleware(self) -> list[Any]:
        return list(getattr(self._app, "user_middleware", None) or ())

    def _wrap(self) -> Any:
        """Only the middleware, around the routes of the server."""
        stack: Any = ask_server
        for each in reversed(self._middleware()):
            stack = each.cls(stack, *getattr(each, "args", ()), **each.kwargs)
        return stack

    # -- lifespan ----------------------------------------------------------------

    async def start(self) -> None:
        """Runs the app's start-up; raises its errors."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lifespan = asyncio.create_task(self._live(started))
        await self._events.put({"type": "lifespan.startup"})
        await started

    async def stop(self) -> None:
        if self._lifespan is None or self._lifespan.done():
            return
        await self._events.put({"type": "lifespan.shutdown"})
        try:
            await asyncio.wait_for(self._has_stopped.wait(), _STOP_LIMIT)
        except asyncio.TimeoutError:
            log("the HTTP app did not shut down in time")
        self._lifespan.cancel()

    async def _live(self, started: asyncio.Future[None]) -> None:
        async def send(message: dict[str, Any]) -> None:
            kind = message["type"]
            if kind == "lifespan.startup.failed":
                if not started.done():
                    text = message.get("message") or "start-up failed"
                    started.set_exception(RuntimeError(text))
            elif kind == "lifespan.startup.complete":
                if not started.done():
                    started.set_result(None)
            else:
                self._has_stopped.set()

        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self._state,
        }
        try:
            await self._app(scope, self._events.get, send)
        except Exception as error:
            # An app without a lifespan raises at once.
            log(f"the HTTP app has no lifespan: {type(error).__name__}: {error}")
        finally:
            self._has_stopped.set()
            if not started.done():
                started.set_result(None)

    # -- requests ------------------------------------------------------------------

    async def request(self, call: Call) -> Reply:
        exchange = _Exchange(call)
        calling.set(call.head.get("api"))
        app = self._app
        scope = _scope(call, self._state)
        if call.head.get("inner"):
            if self._wrapping is None:
                self._wrapping = self._wrap()
            app = self._wrapping
            scope["app"] = self._app
        try:
            await app(scope, exchange.receive, exchange.send)
        except Exception:
            if not exchange.has_started:
                raise
            log("the HTTP app failed after it had started its response")
            raise
        if not exchange.has_started:
            raise RuntimeError("the HTTP app sent no response")
        return b"{}", ()


class _Exchange:
    """One request and its response."""

    def __init__(self, call: Call) -> None:
        self.has_started = False
        self._call = call
        self._body: bytes | None = call.blobs[0] if call.blobs else b""
        self._done = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._done.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            headers = [(bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in message.get("headers", ())]
            report = {"status": message["status"], "headers": headers}
            self._call.piece(orjson.dumps(report))
        elif message["type"] == "http.response.body":
            if body := bytes(message.get("body", b"")):
                self._call.piece(b"{}", (body,))
            if not message.get("more_body"):
                self._done.set()
        if self._call.must_wait():
            await self._call.wait()


def _scope(call: Call, state: dict[str, Any]) -> dict[str, Any]:
    head = call.head
    path = head.get("path") or "/"
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": head.get("method") or "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": (head.get("query") or "").lstrip("?").encode(),
        "headers": [
            (k.lower().encode("latin-1"), v.encode("latin-1", "replace")) for k, v in head.get("headers") or ()
        ],
        "client": None,
        "server": None,
        "state": dict(state),
    }
    if (user := head.get("user")) is not None:
        scope["user"] = User(user)
        scope["auth"] = _Credentials(scope["user"].permissions)
    return scope


class _Credentials:
    """As Starlette's: `requires()` reads it."""

    def __init__(self, scopes: list[str]) -> None:
        self.scopes = scopes
