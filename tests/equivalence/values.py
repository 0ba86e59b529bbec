"""Converts values between Python and JSON, in the record form of docs/encoding.md.

This codec is independent on purpose: the harness must not depend on the package whose storage it
tests. It covers the values of the corpus.
"""

import math
from dataclasses import is_dataclass

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Interrupt, Overwrite, Send

MESSAGES = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "remove": RemoveMessage,
    "AIMessageChunk": AIMessageChunk,
}

# In the order of the encoding; a member with its default value is left out.
MEMBERS = (
    "id",
    "name",
    "additional_kwargs",
    "response_metadata",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "tool_call_chunks",
    "chunk_position",
    "tool_call_id",
    "artifact",
    "status",
)


def encode_message(message):
    record = {"$": "message", "type": message.type, "content": encode(message.content)}
    for member in MEMBERS:
        value = getattr(message, member, None)
        is_given = bool(value) or (member == "tool_call_id" and value is not None)
        if is_given and (member, value) != ("status", "success"):
            record[member] = encode(value)
    return record


def encode(value):
    """Returns the JSON form of a Python value; raises TypeError if there is no such form."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {"$": "float", "v": str(value)}
    if isinstance(value, BaseMessage):
        return encode_message(value)
    if isinstance(value, Interrupt):
        return {"$": "interrupt", "value": encode(value.value), "id": value.id}
    if isinstance(value, Send):
        return {"$": "send", "node": value.node, "arg": encode(value.arg)}
    if isinstance(value, Overwrite):
        return {"$": "overwrite", "value": encode(value.value)}
    if isinstance(value, Command):
        members = {name: getattr(value, name) for name in ("graph", "update", "resume", "goto")}
        given = {name: item for name, item in members.items() if item not in (None, (), [])}
        return {"$": "command"} | encode(given)
    if isinstance(value, BaseException):
        return repr(value)
    if isinstance(value, (set, frozenset)):
        return {"$": "set", "items": sorted(encode(item) for item in value)}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    raise TypeError(
        f"{type(value).__name__} has no place in the corpus: {value!r}"
        + (" (a dataclass)" if is_dataclass(value) else "")
    )


def decode_message(record):
    members = {key: decode(value) for key, value in record.items() if key not in ("$", "type")}
    return MESSAGES[record["type"]](**members)


def decode_command(record):
    members = {key: decode(value) for key, value in record.items() if key != "$"}
    return Command(**members)


RECORDS = {
    "message": decode_message,
    "send": lambda record: Send(record["node"], decode(record["arg"])),
    "overwrite": lambda record: Overwrite(decode(record["value"])),
    "command": decode_command,
    "set": lambda record: set(decode(record["items"])),
}


def decode(value):
    """Returns the Python value of a JSON form."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if "$" in value:
            return RECORDS[value["$"]](value)
        return {key: decode(item) for key, item in value.items()}
    return value
