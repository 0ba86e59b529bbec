"""The classes of LangChain and LangGraph that the canonical encoding supports.

They are looked up once and passed to the extension. An installation may lack some of them; their
records are then kept unchanged (`Foreign`).
"""

from __future__ import annotations

import re
from datetime import datetime
from importlib import import_module
from typing import Any

from langchain_core import messages as lc

from heddle._core import Classes, Codec
from heddle._foreign import Foreign

# Members of a message in the order of the encoding (docs/encoding.md), with the rule of each.
_MEMBERS = {
    "content": "content",
    "id": "opt_text",
    "name": "opt_text",
    "additional_kwargs": "opt_dict",
    "response_metadata": "opt_dict",
    "tool_calls": "opt_list",
    "invalid_tool_calls": "opt_list",
    "usage_metadata": "opt_any",
    "tool_call_chunks": "opt_list",
    "chunk_position": "opt_any",
    "tool_call_id": "text",
    "artifact": "opt_any",
    "status": "status",
    "role": "text",
}

# The most frequent first: the extension searches in this order. With the required constructor
# arguments.
_SAMPLES: dict[str, dict[str, Any]] = {
    "AIMessage": {},
    "HumanMessage": {},
    "ToolMessage": {"tool_call_id": "c"},
    "SystemMessage": {},
    "RemoveMessage": {"id": "r"},
    "FunctionMessage": {"name": "f"},
    "ChatMessage": {"role": "r"},
    "AIMessageChunk": {},
    "HumanMessageChunk": {},
    "ToolMessageChunk": {"tool_call_id": "c"},
    "SystemMessageChunk": {},
    "FunctionMessageChunk": {"name": "f"},
    "ChatMessageChunk": {"role": "r"},
}

_MOMENT = re.compile(
    r"([+-]\d{6}|\d{4})(-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?"
    r"(Z|[+-]\d\d:\d\d(?::\d\d(?:\.\d{6})?)?)?",
    re.ASCII,
)


def parse_datetime(text: str) -> datetime | None:
    """The datetime of an ISO 8601 text; None if `datetime` cannot represent it."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"not hd1: invalid date and time: {text!r}")
    year, rest, fraction, offset = match.groups()
    if len(year) > 4 or year == "0000" or (fraction and len(fraction) > 6):
        return None
    fraction = f".{fraction:0<6}" if fraction else ""
    offset = "+00:00" if offset == "Z" else offset or ""
    return datetime.fromisoformat(f"{year}{rest}{fraction}{offset}")


def _find(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name, None)
    except ImportError:
        return None


def _make(name: str) -> Any:
    cls = getattr(lc, name, None)
    if cls is None:
        return None
    content = {} if name == "RemoveMessage" else {"content": "c"}
    return cls(**content, **_SAMPLES[name])


def _rule(cls: type, name: str) -> str:
    required = cls.__name__.removesuffix("Chunk"), name
    if required in {("FunctionMessage", "name"), ("RemoveMessage", "id")}:
        return "text"
    return _MEMBERS[name]


def _fields(sample: Any) -> tuple[tuple[str, str, Any, int], ...] | None:
    """(name, rule, default, slot) in the order of the encoding; None for a class with other fields."""
    cls = type(sample)
    slots = {name: slot for slot, name in enumerate(sample.__dict__)}
    fields: list[tuple[str, str, Any, int]] = []
    for name in _MEMBERS:
        if name in slots:
            rule = _rule(cls, name)
            default = {"opt_text": None, "opt_any": None, "status": "success"}.get(rule, ...)
            fields.append((name, rule, default, slots.pop(name)))
    if "content" not in sample.__dict__ or "type" not in slots:
        return None
    fields.append(("type", "type", sample.type, slots.pop("type")))
    for name, slot in slots.items():
        # A field of another version of the class: supported only at its default value.
        value = sample.__dict__[name]
        if value is not None and not isinstance(value, bool):
            return None
        fields.append((name, "default", value, slot))
    return tuple(fields)


def _add_messages(classes: Classes) -> list[Any]:
    chunk = getattr(lc, "BaseMessageChunk", ())
    samples = []
    for name in _SAMPLES:
        sample = _make(name)
        fields = _fields(sample) if sample is not None else None
        if fields is None:
            continue
        extra = isinstance(sample.__pydantic_extra__, dict)
        classes.add_message(
            type(sample),
            sample.type,
            fields,
            extra,
            isinstance(sample, lc.AIMessage),
            isinstance(sample, chunk),
        )
        samples.append(sample)
    return samples


def _parts(message: Any) -> tuple[Any, ...]:
    return (
        type(message),
        list(message.__dict__.items()),
        message.__pydantic_fields_set__,
        message.__pydantic_extra__,
        message.__pydantic_private__,
        message.model_dump(),
        repr(message),
    )


def _verify_bypass(classes: Classes, samples: list[Any]) -> None:
    """Allows building messages without their constructor where both ways give the same result."""
    codec = Codec(classes, None, None, True)
    for sample in samples:
        cls = type(sample)
        texts = [codec.encode(sample)]
        full = sample.model_copy(update={"name": "n", "id": "i", "additional_kwargs": {"k": [1]}})
        full.__pydantic_fields_set__.update({"name", "id", "additional_kwargs"})
        texts.append(codec.encode(full))
        constructed = [_parts(codec.decode(text)) for text in texts]
        classes.set_bypass(cls, True)
        try:
            same = [_parts(codec.decode(text)) for text in texts] == constructed
        except Exception:
            same = False
        classes.set_bypass(cls, same)


def _build() -> Classes:
    interrupt = _find("langgraph.types", "Interrupt")
    types = {
        "send": _find("langgraph.types", "Send"),
        "command": _find("langgraph.types", "Command"),
        "interrupt": interrupt,
        "overwrite": _find("langgraph.types", "Overwrite"),
        "timeout": _find("langgraph.types", "TimeoutPolicy"),
        "delta": _find("langgraph.checkpoint.serde.types", "_DeltaSnapshot"),
        "datetime": datetime,
        "foreign": Foreign,
    }
    has_schema = "response_schema" in getattr(interrupt, "__dataclass_fields__", {})
    classes = Classes(types, parse_datetime, has_schema)
    _verify_bypass(classes, _add_messages(classes))
    return classes


CLASSES = _build()
