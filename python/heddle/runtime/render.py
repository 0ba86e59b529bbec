"""JSON for clients: values of a graph, as LangGraph's own server renders them."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
from langchain_core import messages as lc
from langgraph.types import Interrupt, Send

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS
_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 200


def render(value: Any) -> bytes:
    """The value as JSON. Never fails: a value without a JSON form becomes its `str()`."""
    try:
        return orjson.dumps(value, _default, _OPTIONS)
    except (TypeError, ValueError, RecursionError):
        # Large integers, unpaired surrogates, keys of odd types, cycles.
        return json.dumps(_plain(value, 0), ensure_ascii=False).encode()


def _message(obj: Any) -> Any:
    # The members in the order of the class, as model_dump() returns them, at lower cost.
    extra = obj.__pydantic_extra__
    return {**obj.__dict__, **extra} if extra else obj.__dict__


def _interrupt(obj: Interrupt) -> Any:
    shown = {"value": obj.value, "id": obj.id}
    schema = getattr(obj, "response_schema", None)
    return shown if schema is None else {**shown, "response_schema": schema}


def _decimal(obj: Decimal) -> Any:
    if not obj.is_finite():
        return None
    return int(obj) if obj.as_tuple().exponent == 0 else float(obj)


def _bytes(obj: bytes | bytearray | memoryview) -> str:
    return b64encode(obj).decode()


_KNOWN: dict[type, Callable[[Any], Any]] = {
    Interrupt: _interrupt,
    Send: lambda obj: {"node": obj.node, "arg": obj.arg},
    set: list,
    frozenset: list,
    deque: list,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    Decimal: _decimal,
    timedelta: timedelta.total_seconds,
    timezone: lambda obj: obj.tzname(None),
    ZoneInfo: str,
    re.Pattern: lambda obj: obj.pattern,
}
for _name in (
    "AIMessage",
    "AIMessageChunk",
    "HumanMessage",
    "HumanMessageChunk",
    "ToolMessage",
    "ToolMessageChunk",
    "SystemMessage",
    "SystemMessageChunk",
    "ChatMessage",
    "ChatMessageChunk",
    "FunctionMessage",
    "FunctionMessageChunk",
    "RemoveMessage",
):
    _KNOWN[getattr(lc, _name)] = _message


def _default(obj: Any) -> Any:
    known = _KNOWN.get(type(obj))
    try:
        return _object(obj) if known is None else known(obj)
    except Exception:
        return _text(obj)


def _object(obj: Any) -> Any:
    """Converts an object of any other class to a simpler one."""
    if isinstance(obj, type):
        return f"{obj.__module__}.{obj.__qualname__}"
    if callable(dump := getattr(obj, "model_dump", None)):
        return dump()
    if dataclasses.is_dataclass(obj):
        return {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
    for name in ("_asdict", "dict"):
        if callable(method := getattr(obj, name, None)):
            return method()
    if isinstance(obj, BaseException):
        return {"error": type(obj).__name__, "message": str(obj)}
    if isinstance(obj, Mapping):
        return dict(obj)
    if isinstance(obj, (Set, deque)):
        return list(obj)
    for cls, make in _KNOWN.items():
        if isinstance(obj, cls):
            return make(obj)
    return _text(obj)


def _text(obj: Any) -> str:
    try:
        return _SURROGATES.sub("\ufffd", str(obj))
    except Exception:
        return f"<{type(obj).__name__}>"


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        key = key.value
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    if isinstance(key, (datetime, date, time)):
        return key.isoformat()
    return _text(key)


def _plain(value: Any, depth: int) -> Any:
    """The slow path, for values that orjson rejects."""
    if depth > _MAX_DEPTH:
        return _text(type(value).__name__)
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if value is None or isinstance(value, (bool, int)) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_key(key): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, PurePath)):
        return str(value)
    return _plain(_default(value), depth + 1)
