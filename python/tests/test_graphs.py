"""Graphs give the same states on HeddleSaver as on LangGraph's own in-memory saver."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from graphs import SCRIPTS, Runner
from heddle import HeddleSaver
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")
VERSION = re.compile(r"(\d{32})\.[\d.e-]+")
ASKING = {"two_questions", "nested_subgraphs", "functional", "update_state"}
NULL_TASK = "00000000-0000-0000-0000-000000000000"


class Plain:
    """Objects as plain data, in which ids are numbered as they appear."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {NULL_TASK: "null"}

    def text(self, text: str) -> str:
        if match := VERSION.fullmatch(text):
            return f"version {int(match[1])}"
        return IDS.sub(lambda match: self.numbers.setdefault(match[0], f"#{len(self.numbers)}"), text)

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, str):
            return self.text(obj)
        if isinstance(obj, BaseModel):
            return type(obj).__name__, self(obj.__dict__), self(obj.__pydantic_extra__)
        if is_dataclass(obj) and not isinstance(obj, type):
            return type(obj).__name__, [self(getattr(obj, field.name)) for field in fields(obj)]
        if isinstance(obj, tuple) and hasattr(obj, "_asdict"):
            return type(obj).__name__, self(obj._asdict())
        if isinstance(obj, dict):
            drop = {"ts", "created_at"}
            # Channels come in any order; of other dicts the order does not matter either.
            keys = sorted((key for key in obj if key not in drop), key=repr)
            return "dict", [(self(key), self(obj[key])) for key in keys]
        if isinstance(obj, list | tuple):
            return "list", [self(item) for item in obj]
        if isinstance(obj, set | frozenset):
            return type(obj).__name__, sorted(map(repr, obj))
        return type(obj).__name__, repr(obj)


def difference(a: Any, b: Any, path: str = "") -> str | None:
    """The differences of two plain values, for a readable failure."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            if found := difference(left, right, f"{path}/{i}"):
                return found
        return None
    return None if a == b else f"{path}: {a!r} is not {b!r}"


async def stored(saver: BaseCheckpointSaver[Any], is_async: bool) -> list[Any]:
    """All checkpoints of the thread, oldest first."""
    config: Any = {"configurable": {"thread_id": "t"}}
    if is_async:
        tuples = [item async for item in saver.alist(config)]
    else:
        tuples = list(saver.list(config))
    groups = defaultdict(list)
    for item in tuples:
        groups[item.config["configurable"]["checkpoint_ns"]].append(item.checkpoint["id"])
    assert all(ids == sorted(ids, reverse=True) for ids in groups.values())
    return sorted(tuples, key=lambda item: item.checkpoint["id"])


async def play(name: str, saver: BaseCheckpointSaver[Any], is_async: bool, durability: str) -> Any:
    run = Runner(saver, is_async, durability)
    plain = Plain()
    results = plain(await SCRIPTS[name](run))
    history = plain(await run.history())
    return results, history, plain(await stored(saver, is_async))


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
@pytest.mark.parametrize("is_async", [False, True], ids=["invoke", "ainvoke"])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_same_states(name: str, is_async: bool, durability: str, url: str) -> None:
    if is_async and sys.version_info < (3, 11) and name in ASKING:
        pytest.skip("LangGraph's interrupt() in async nodes needs Python 3.11")
    expected = await play(name, InMemorySaver(), is_async, durability)
    async with HeddleSaver.from_conn_string(url) as saver:
        assert difference(await play(name, saver, is_async, durability), expected) is None


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("name", SCRIPTS)
async def test_same_after_reopening(name: str, url: str) -> None:
    with HeddleSaver.from_conn_string(url) as saver:
        run = Runner(saver, False, "async")
        await SCRIPTS[name](run)
        before = await stored(saver, False)
    async with HeddleSaver.from_conn_string(url) as saver:
        assert difference(Plain()(await stored(saver, True)), Plain()(before)) is None
        saver.check()
