"""The test vectors that all implementations of the encoding share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from heddle import CanonicalSerializer
from langchain_core import messages
from langgraph import types
from langgraph.checkpoint.serde.types import _DeltaSnapshot

PATH = Path(__file__).parents[2] / "tests" / "data" / "encoding.json"
VECTORS = json.loads(PATH.read_text()) if PATH.exists() else {"valid": [], "invalid": []}
NAMES = {
    **{name: getattr(messages, name) for name in dir(messages)},
    **{name: getattr(types, name) for name in types.__all__},
    "_DeltaSnapshot": _DeltaSnapshot,
    "Decimal": Decimal,
    "UUID": UUID,
    "datetime": datetime,
    "timedelta": timedelta,
    "timezone": timezone,
}
CODEC = CanonicalSerializer()._codec


def value(expression: str) -> Any:
    return eval(expression, dict(NAMES))


def same(a: Any, b: Any) -> bool:
    """Equal, of equal types all the way down; NaN equals itself and -0.0 differs from 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (a != a and b != b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, messages.BaseMessage):
        return same(a.__dict__, b.__dict__)
    return bool(a == b)


def reads(vector: dict[str, Any]) -> str | None:
    return vector.get("python_reads", vector["python"])


def vectors(kind: str, wanted: Callable[[dict[str, Any]], Any]) -> Any:
    chosen = [vector for vector in VECTORS[kind] if wanted(vector)]
    return pytest.mark.parametrize("vector", chosen, ids=lambda vector: vector["name"])


def test_there_are_vectors() -> None:
    if not PATH.exists():
        pytest.skip("not in the repository")
    assert len(VECTORS["valid"]) > 100 and len(VECTORS["invalid"]) > 50


@vectors("valid", lambda vector: vector["python"] is not None)
def test_writes_exactly_this_text(vector: dict[str, Any]) -> None:
    assert CODEC.encode(value(vector["python"])).decode() == vector["hd1"]


@vectors("valid", lambda vector: reads(vector) is not None)
def test_reads_this_value(vector: dict[str, Any]) -> None:
    assert same(CODEC.decode(vector["hd1"].encode()), value(str(reads(vector))))


@vectors("valid", lambda vector: vector.get("python_keeps"))
def test_keeps_records_of_other_runtimes(vector: dict[str, Any]) -> None:
    assert CODEC.encode(CODEC.decode(vector["hd1"].encode())).decode() == vector["hd1"]


@vectors("invalid", lambda vector: not vector.get("strict"))
def test_refuses(vector: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        CODEC.decode(vector["hd1"].encode())
