"""The SDK's client without a URL: `get_client()` in a graph or a route reaches this server.

The SDK imports `langgraph_api.server` and `langgraph_api.asgi_transport`, which exist in the
process of LangGraph's own server. Here this module defines both, and the transport sends requests
to the server's address. Each request carries the pass of its run or route: the server treats it as
the caller's. Requests that went through the application's middleware return to the server the same
way.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from contextvars import ContextVar
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

import httpx

_HEADER = b"heddle-run-token"
# Hop-by-hop headers; and no compression of a body that is only passed on.
_HOPS = frozenset(
    (
        b"accept-encoding",
        b"connection",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
        _HEADER,
    )
)
_PACKAGE = "langgraph_api"

# `api` of the current server call: {"url", "pass"}.
calling: ContextVar[dict[str, Any] | None] = ContextVar("heddle_api", default=None)


class Transport(httpx.AsyncBaseTransport):
    """Sends requests to the server as the caller of the current run or route."""

    def __init__(self, app: Any = None, root_path: str = "", **_: Any) -> None:
        self.app = app  # the SDK sets it

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        api = calling.get()
        if not api:
            raise httpx.ConnectError(
                "a client without a URL reaches the server from a run or a route of the project; "
                "elsewhere it needs one",
                request=request,
            )
        base = httpx.URL(api["url"])
        path = base.raw_path.rstrip(b"/") + request.url.raw_path
        headers = [(b"host", base.netloc)]
        headers += [(k, v) for k, v in request.headers.raw if k.lower() != b"host"]
        if api.get("pass") and "authorization" not in request.headers:
            headers.append((_HEADER, api["pass"].encode()))
        sent = httpx.Request(
            request.method,
            base.copy_with(raw_path=path),
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await _connections().handle_async_request(sent)


# Connections belong to the event loop that created them.
_open: WeakKeyDictionary[Any, httpx.AsyncHTTPTransport] = WeakKeyDictionary()


def _connections() -> httpx.AsyncHTTPTransport:
    loop = asyncio.get_running_loop()
    found = _open.get(loop)
    if found is None:
        # The address comes from the server itself; its certificate names another host.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        found = _open[loop] = httpx.AsyncHTTPTransport(verify=False, limits=limits)
    return found


async def ask_server(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI app: the response of a server route to a request that went through middleware."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    api = calling.get() or {}
    base = httpx.URL(api["url"])
    headers = [(k, v) for k, v in scope["headers"] if k.lower() not in _HOPS]
    if api.get("pass"):
        headers.append((_HEADER, api["pass"].encode()))
    target = base.raw_path.rstrip(b"/") + _target(scope)
    request = httpx.Request(scope["method"], base.copy_with(raw_path=target), headers=headers, content=body)
    response = await _connections().handle_async_request(request)
    try:
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": [(k.lower(), v) for k, v in response.headers.raw],
            }
        )
        stream: Any = response.stream
        async for chunk in stream:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        await response.aclose()


def _target(scope: dict[str, Any]) -> bytes:
    """Path and query; middleware that changes the path changes its decoded form."""
    raw: bytes = scope.get("raw_path") or b""
    path: str = scope["path"]
    if unquote(raw.decode("latin-1")) != path:
        raw = quote(path).encode()
    query: bytes = scope.get("query_string") or b""
    return raw + b"?" + query if query else raw


def install() -> None:
    """Runs before the project's files are imported: clients are often created at the top of a file."""
    if importlib.util.find_spec(_PACKAGE) is None:
        package = ModuleType(_PACKAGE, __doc__)
        package.__path__ = []
        sys.modules[_PACKAGE] = package
    for name, members in (
        ("server", {"app": object()}),
        ("asgi_transport", {"ASGITransport": Transport}),
    ):
        module = ModuleType(f"{_PACKAGE}.{name}", __doc__)
        module.__dict__.update(members)
        sys.modules[module.__name__] = module
        setattr(importlib.import_module(_PACKAGE), name, module)
