"""The SDK's client without a URL: `get_client()` in a graph or a route reaches this server.

The SDK imports `langgraph_api.server` and `langgraph_api.asgi_transport`, which LangGraph's own
server has in its process. Here both are modules that this one makes, and the transport sends
requests to the server's address. Each carries the pass of the run or route that it comes from: the
server takes it for the caller.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from contextvars import ContextVar
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import httpx

_HEADER = "heddle-run-token"
_PACKAGE = "langgraph_api"

# `api` of the server's call that the code works for: {"url", "pass"}.
calling: ContextVar[dict[str, Any] | None] = ContextVar("heddle_api", default=None)


class Transport(httpx.AsyncBaseTransport):
    """Sends requests to the server, as the caller of the current run or route."""

    def __init__(self, app: Any = None, root_path: str = "", **_: Any) -> None:
        self.app = app  # the SDK sets it
        # Connections belong to the event loop that they were made in.
        self._inner: WeakKeyDictionary[Any, httpx.AsyncHTTPTransport] = WeakKeyDictionary()

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
            headers.append((_HEADER.encode(), api["pass"].encode()))
        sent = httpx.Request(
            request.method,
            base.copy_with(raw_path=path),
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._here().handle_async_request(sent)

    async def aclose(self) -> None:
        inner = self._inner.pop(asyncio.get_running_loop(), None)
        if inner is not None:
            await inner.aclose()

    def _here(self) -> httpx.AsyncHTTPTransport:
        loop = asyncio.get_running_loop()
        inner = self._inner.get(loop)
        if inner is None:
            # The server itself told the address; its certificate names another host.
            inner = self._inner[loop] = httpx.AsyncHTTPTransport(verify=False)
        return inner


def install() -> None:
    """Before the project's files are imported: clients are often made at the top of a file."""
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
