"""Custom auth: authenticates requests and authorizes operations (`langgraph_sdk.Auth`)."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from heddle.runtime.errors import LoadError
from heddle.runtime.graphs import User
from heddle.runtime.link import Call
from heddle.runtime.render import render

Reply = tuple[bytes, tuple[bytes, ...]]


_CREDENTIALS = ("auth", "cookie", "token", "key", "secret", "session")


def without_credentials(text: str, headers: Any) -> str:
    """The loggable text of an exception, without credentials: exceptions often contain the request."""
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    for name, value in pairs:
        if any(word in name.lower() for word in _CREDENTIALS):
            for part in (value, *value.replace("=", " ").replace(";", " ").split()):
                text = text.replace(part, "***") if len(part) >= 8 else text
    return text


class Refused(Exception):
    """A response with a status, not a failure of the worker."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})

    def report(self) -> dict[str, Any]:
        return {
            "type": "HTTPException",
            "message": str(self),
            "status": self.status,
            "headers": self.headers,
        }


class CustomAuth:
    """The project's `Auth` object."""

    def __init__(self, auth: Any) -> None:
        if not hasattr(auth, "_authenticate_handler") or not hasattr(auth, "_handlers"):
            raise LoadError(f"{type(auth).__name__} is not an Auth: `from langgraph_sdk import Auth; auth = Auth()`")
        if auth._authenticate_handler is None:
            raise LoadError("the Auth has no @auth.authenticate handler")
        self._authenticate: Callable[..., Any] = auth._authenticate_handler
        self._parameters = frozenset(inspect.signature(self._authenticate).parameters)
        self._handlers: dict[str, Callable[..., Any]] = {}
        for (resource, action), handlers in auth._handlers.items():
            self._handlers[_name(resource, action)] = handlers[-1]
        if auth._global_handlers:
            self._handlers["*"] = auth._global_handlers[-1]

    def report(self) -> dict[str, Any]:
        return {"handlers": [*self._handlers]}

    async def authenticate(self, call: Call) -> Reply:
        scope = _scope(call.head)
        given = {name: value for name, value in _arguments(scope, self._parameters)}
        try:
            found = await _run(self._authenticate, given)
        except Exception as error:
            raise _refusal(error) or error from None
        return render({"user": _user(found)}), ()

    async def authorize(self, call: Call) -> Reply:
        head = call.head
        handler = self._handlers.get(head["handler"])
        if handler is None:
            raise LookupError(f"no handler {head['handler']!r}")
        from langgraph_sdk import Auth

        value = call.member("value")
        before = orjson.dumps(value)
        user = User(head["user"])
        context = Auth.types.AuthContext(
            user=user,
            permissions=user.permissions,
            resource=head["resource"],
            action=head["action"],
        )
        try:
            result = await _run(handler, {"ctx": context, "value": value})
        except AssertionError as error:
            raise Refused(403, str(error) or "Forbidden") from None
        except Exception as error:
            raise _refusal(error) or error from None
        return render(_decision(result, value, before)), ()


def _name(resource: str, action: str) -> str:
    if resource == "*":
        return "*" if action == "*" else f"*.{action}"
    return resource if action == "*" else f"{resource}.{action}"


def _decision(result: Any, value: Any, before: bytes) -> dict[str, Any]:
    if result is False:
        return {"allow": False}
    report: dict[str, Any] = {"allow": True}
    if isinstance(result, dict):
        report["filter"] = result
    elif result is not None and result is not True:
        raise TypeError(f"a handler must return None, True, False or a filter (a dict), not {type(result).__name__}")
    if render(value) != before:
        report["value"] = value
    return report


async def _run(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    result = await asyncio.to_thread(function, **arguments)
    return await result if inspect.isawaitable(result) else result


def _refusal(error: Exception) -> Refused | None:
    """Exceptions with a status: those of langgraph_sdk, of Starlette and FastAPI."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return None
    detail = getattr(error, "detail", None)
    text = detail if isinstance(detail, str) else orjson.dumps(detail).decode()
    return Refused(status, text, getattr(error, "headers", None))


def _scope(head: dict[str, Any]) -> dict[str, Any]:
    """The request as an ASGI scope."""
    query = head.get("query") or ""
    if isinstance(query, dict):
        query = urlencode(query, doseq=True)
    headers = head.get("headers") or {}
    pairs = headers.items() if isinstance(headers, dict) else headers
    return {
        "type": "http",
        "http_version": "1.1",
        "method": head.get("method") or "GET",
        "scheme": "http",
        "path": head.get("path") or "/",
        "raw_path": (head.get("path") or "/").encode(),
        "root_path": "",
        "query_string": query.lstrip("?").encode(),
        "headers": [(k.lower().encode(), str(v).encode()) for k, v in pairs],
        "path_params": head.get("path_params") or {},
    }


def _arguments(scope: dict[str, Any], names: frozenset[str]) -> list[tuple[str, Any]]:
    headers = dict(scope["headers"])
    makers: dict[str, Callable[[], Any]] = {
        "scope": lambda: scope,
        "request": lambda: _request(scope),
        "path": lambda: scope["path"],
        "method": lambda: scope["method"],
        "path_params": lambda: scope["path_params"],
        "query_params": lambda: _query(scope["query_string"]),
        "headers": lambda: headers,
        "authorization": lambda: _text(headers.get(b"authorization")),
        "scopes": list,
        "user": lambda: None,
        "body": dict,
    }
    return [(name, make()) for name, make in makers.items() if name in names]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _query(text: bytes) -> Any:
    try:
        starlette: Any = importlib.import_module("starlette.datastructures")
    except ImportError:
        return dict(parse_qsl(text.decode(), keep_blank_values=True))
    return starlette.QueryParams(text)


def _request(scope: dict[str, Any]) -> Any:
    try:
        starlette: Any = importlib.import_module("starlette.requests")
    except ImportError as error:
        raise LoadError("a function with the parameter `request` requires the package starlette") from error
    return starlette.Request(scope)


def _user(found: Any) -> dict[str, Any]:
    """Normalizes any result of @auth.authenticate to an object with an identity."""
    permissions: Any = None
    user: dict[str, Any]
    if isinstance(found, tuple) and len(found) == 2:
        permissions, found = found
    if isinstance(found, str):
        user = {"identity": found}
    elif isinstance(found, Mapping):
        user = dict(found)
    elif callable(dump := getattr(found, "model_dump", None)) or callable(dump := getattr(found, "dict", None)):
        user = dump()
    else:
        user = {k: v for k, v in vars(found).items() if not k.startswith("_")}
    if "identity" not in user and hasattr(found, "identity"):
        user["identity"] = found.identity
    if not isinstance(user.get("identity"), str) or not user["identity"]:
        raise TypeError("@auth.authenticate returned no `identity`")
    if permissions is None:
        permissions = user.get("permissions", getattr(found, "permissions", None))
    user["permissions"] = list(permissions or ())
    user.setdefault("is_authenticated", True)
    user.setdefault("display_name", user["identity"])
    return user
