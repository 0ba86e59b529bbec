"""Evaluates the values of docs/graphs.md: paths, templates and calls."""

import json
import re

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Send
from values import RECORDS, encode

MISSING = object()
PART = re.compile(r"""\.?([A-Za-z_][\w-]*)|\["((?:[^"\\]|\\.)*)"\]|\[(-?\d+)\]""")
HOLE = re.compile(r"\{\{\{\{|\{\{((?:(?!\}\}).)*)\}\}")


def member(value, name):
    if isinstance(value, BaseMessage):
        return getattr(value, name, MISSING)
    return value.get(name, MISSING) if isinstance(value, dict) else MISSING


def element(value, index):
    if isinstance(value, (list, tuple)) and -len(value) <= index < len(value):
        return value[index]
    return MISSING


def find(path, scope):
    """Returns the value at a path, or MISSING."""
    path = path.strip()
    value, at = scope, 0
    while at < len(path):
        part = PART.match(path, at)
        if not part:
            raise ValueError(f"not a path: {path}")
        name, quoted, index = part.groups()
        value = element(value, int(index)) if index else member(value, name or quoted)
        if value is MISSING:
            return MISSING
        at = part.end()
    return value


def get(path, scope):
    value = find(path, scope)
    return None if value is MISSING else value


def as_text(value):
    if isinstance(value, str):
        return value
    return json.dumps(encode(value), ensure_ascii=False, separators=(",", ":"))


def template(string, scope):
    whole = HOLE.fullmatch(string)
    if whole and whole.group(1) is not None:
        return get(whole.group(1), scope)

    def fill(hole):
        return "{{" if hole.group(1) is None else as_text(get(hole.group(1), scope))

    return HOLE.sub(fill, string)


def join(*values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def each(spec, scope):
    """Yields the scopes of a call over the elements of a list, with the element under its name."""
    for value in evaluate(spec["over"], scope):
        yield value, {**scope, spec.get("as", "item"): value}


CALLS = {
    "@eq": lambda a, b: a == b,
    "@ne": lambda a, b: a != b,
    "@lt": lambda a, b: a < b,
    "@le": lambda a, b: a <= b,
    "@gt": lambda a, b: a > b,
    "@ge": lambda a, b: a >= b,
    "@and": lambda *values: all(values),
    "@or": lambda *values: any(values),
    "@in": lambda value, many: value in many,
    "@contains": lambda many, value: value in many,
    "@starts": lambda string, start: string.startswith(start),
    "@ends": lambda string, end: string.endswith(end),
    "@add": join,
    "@sub": lambda a, b: a - b,
    "@mul": lambda a, b: a * b,
    "@div": lambda a, b: a / b,
    "@mod": lambda a, b: a % b,
    "@concat": lambda *values: "".join(as_text(value) for value in values),
    "@join": lambda many, separator: separator.join(many),
    "@split": lambda string, separator: string.split(separator),
    "@get": lambda many, key: many[key],
    "@slice": lambda many, start, end: many[start:end],
    "@merge": lambda *values: {key: item for value in values for key, item in value.items()},
}

CALLS_OF_ONE = {
    "@not": lambda value: not value,
    "@len": len,
    "@upper": str.upper,
    "@lower": str.lower,
    "@trim": str.strip,
    "@first": lambda many: many[0] if many else None,
    "@last": lambda many: many[-1] if many else None,
    "@range": lambda count: list(range(count)),
    "@json": as_text,
    "@parse": json.loads,
    "@human": lambda content: HumanMessage(content),
    "@ai": lambda content: AIMessage(content),
    "@system": lambda content: SystemMessage(content),
    "@tool": lambda members: ToolMessage(**members),
    "@remove": lambda id: RemoveMessage(id=id),
    "@send": lambda members: Send(members["node"], members["arg"]),
}


def call(name, spec, scope):
    if name == "@literal":
        return spec
    if name == "@exists":
        return find(spec, scope) is not MISSING
    if name == "@if":
        condition, yes, no = spec
        return evaluate(yes if evaluate(condition, scope) else no, scope)
    if name == "@map":
        return [evaluate(spec["value"], inner) for _, inner in each(spec, scope)]
    if name == "@filter":
        return [value for value, inner in each(spec, scope) if evaluate(spec["when"], inner)]
    if name in CALLS:
        return CALLS[name](*(evaluate(item, scope) for item in spec))
    return CALLS_OF_ONE[name](evaluate(spec, scope))


def evaluate(value, scope):
    if isinstance(value, str):
        return template(value, scope)
    if isinstance(value, list):
        return [evaluate(item, scope) for item in value]
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith("@"):
            return call(*next(iter(value.items())), scope)
        result = {name: evaluate(item, scope) for name, item in value.items()}
        # A record of docs/encoding.md; its content is already evaluated.
        return RECORDS[result["$"]](result) if "$" in result else result
    return value
