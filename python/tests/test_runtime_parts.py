"""The parts of a worker that need no server: frames, JSON for clients, errors, watching."""

from __future__ import annotations

import dataclasses
import enum
import json
import struct
import sys
import threading
import time
import uuid
from collections import deque, namedtuple
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from heddle.runtime import frames
from heddle.runtime.errors import describe
from heddle.runtime.payloads import tidy
from heddle.runtime.render import render
from heddle.runtime.watch import Files, where_blocked
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Interrupt, Send
from pydantic import BaseModel
from stub_server import encode

# -- frames ----------------------------------------------------------------------


def read(data: bytes, step: int) -> list[frames.Frame]:
    reader = frames.Reader()
    return [frame for start in range(0, len(data), step) for frame in reader.feed(data[start : start + step])]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_frames(step: int) -> None:
    wanted = [
        (frames.CALL, 1, {"op": "x"}, []),
        (frames.PIECE, 2, {}, [b"a", b"", b"c" * 500]),
        (frames.GO, 0xFFFFFFFF, {}, []),
    ]
    data = b"".join(encode(*each) for each in wanted)
    found = read(data, step)
    assert [(f.kind, f.number, json.loads(f.head), f.blobs) for f in found] == wanted
    again = b"".join(b"".join(frames.pack(*frame)) for frame in found)
    assert again == data


GOOD = bytearray(encode(frames.ANSWER, 1, {}, [b"abc"]))


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [
        (0, "<I", 3),
        (0, "<I", (1 << 30) + 1),
        (4, "<B", 0),
        (4, "<B", 8),
        (5, "<B", 1),
        (6, "<H", 2),
        (6, "<H", 5000),
        (12, "<I", 3),
        (12, "<I", 1 << 31),
        (16, "<I", 4),
    ],
)
def test_bad_frames(offset: int, layout: str, value: int) -> None:
    data = bytearray(GOOD)
    struct.pack_into(layout, data, offset, value)
    with pytest.raises(frames.ProtocolError):
        list(frames.Reader().feed(bytes(data)))


def test_too_many_blobs() -> None:
    with pytest.raises(frames.ProtocolError, match="too large"):
        frames.pack(frames.CALL, 1, b"{}", [b""] * 4097)


# -- JSON for clients --------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    when: datetime
    inner: dict[str, Any]


@dataclasses.dataclass
class Data:
    a: int
    b: Any


Named = namedtuple("Named", "x y")


class Odd:
    def __str__(self) -> str:
        return "odd"


class Broken:
    def __str__(self) -> str:
        raise RuntimeError

    def model_dump(self) -> Any:
        raise RuntimeError


MOMENT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [1, 2.5, None, True, "é"]}, {"a": [1, 2.5, None, True, "é"]}),
        ((1, 2), [1, 2]),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        ({1, 2}, [1, 2]),
        (frozenset([1]), [1]),
        (deque([1]), [1]),
        (b"abc", "YWJj"),
        (bytearray(b"abc"), "YWJj"),
        (MOMENT, "2024-01-02T03:04:05+00:00"),
        (date(2024, 1, 2), "2024-01-02"),
        (timedelta(seconds=90), 90.0),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("3"), 3),
        (Decimal("3.5"), 3.5),
        (Colour.RED, "red"),
        (Path("/a/b"), "/a/b"),
        (Model(when=MOMENT, inner={"x": (1,)}), {"when": "2024-01-02T03:04:05Z", "inner": {"x": [1]}}),
        (Data(1, Data(2, None)), {"a": 1, "b": {"a": 2, "b": None}}),
        (Named(1, 2), {"x": 1, "y": 2}),
        (Interrupt(value="v", id="i"), {"value": "v", "id": "i"}),
        (Send("n", {"a": 1}), {"node": "n", "arg": {"a": 1}}),
        (ValueError("no"), {"error": "ValueError", "message": "no"}),
        (Document("text"), {"id": None, "metadata": {}, "page_content": "text", "type": "Document"}),
        (float("nan"), None),
        (Odd(), "odd"),
        (Broken(), "<Broken>"),
        (1 << 80, 1 << 80),
        ("a\ud800b", "a\ufffdb"),
        ({"k\ud800": {1 << 70: Odd()}}, {"k\ufffd": {str(1 << 70): "odd"}}),
    ],
)  # fmt: skip
def test_render(value: Any, shown: Any) -> None:
    found = json.loads(render(value))
    if isinstance(value, Model):
        found["when"] = found["when"].replace("+00:00", "Z")
    assert found == shown


def test_render_never_fails() -> None:
    assert json.loads(render(CYCLE))
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]
    assert render(deep)
    assert json.loads(render({"big": 1 << 80, "f": float("inf")})) == {"big": 1 << 80, "f": None}


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("a", id="1", name="n"),
        HumanMessage("a", more=3),
        AIMessage("b", tool_calls=[{"name": "x", "args": {"a": 1}, "id": "c"}]),
        AIMessage([{"type": "text", "text": "x"}], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        AIMessageChunk("x", tool_call_chunks=[{"name": "x", "args": "{", "id": "c", "index": 0}]),
        ToolMessage("r", tool_call_id="c", artifact={"a": (1,)}),
        SystemMessage("s", additional_kwargs={"k": b"x"}),
        ChatMessage("a", role="r"),
        FunctionMessage("a", name="f"),
        RemoveMessage("id"),
    ],
)  # fmt: skip
def test_messages_as_pydantic_shows_them(message: Any) -> None:
    wanted = json.loads(render(message.model_dump()))
    found = json.loads(render({"m": [message]}))["m"][0]
    assert found == wanted and [*found] == [*wanted]


def test_tidy() -> None:
    conf = {"thread_id": "t", "my_api_key": "secret", "checkpoint_id": "c"}
    task = {
        "id": "1",
        "interrupts": [{"value": 1, "id": "i", "response_schema": None}],
        "state": {"configurable": conf},
    }
    payload = {"config": {"configurable": conf, "metadata": {}}, "parent_config": None, "values": {}, "tasks": [task]}
    for mode, chunk in (("checkpoints", payload), ("debug", {"type": "checkpoint", "payload": payload})):
        text = render(tidy(mode, chunk)).decode()
        assert "secret" not in text and "response_schema" not in text and '"thread_id":"t"' in text
    assert conf["my_api_key"] == "secret"
    assert tidy("tasks", task)["interrupts"] == [{"value": 1, "id": "i"}]
    assert tidy("debug", {"type": "task", "payload": {"id": "1"}}) == {"type": "task", "payload": {"id": "1"}}


# -- errors and watching -------------------------------------------------------------


def test_describe(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import json\ndef load(text):\n    return json.loads(text)\n")
    scope: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    try:
        scope["load"]("{")
    except ValueError as error:
        told = describe(error)
    assert told["type"] == "JSONDecodeError" and told["message"].startswith("Expecting")
    assert (told["file"], told["line"]) == (str(file), 3)
    assert "return json.loads(text)" in told["traceback"] and "decoder.py" not in told["traceback"]


def test_describe_cause() -> None:
    try:
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("because") from error
    except ValueError as error:
        text = describe(error)["traceback"]
    assert text.index("KeyError: 'a'") < text.index("ValueError: because")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "graph.py"
    named.write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("x")
    files = Files(str(tmp_path), [str(named)], named.stat().st_mtime_ns + 1)
    assert files.changed() == []
    (tmp_path / "new.py").write_text("y = 2\n")
    (tmp_path / "notes.txt").write_text("y")
    assert files.changed() == [str(tmp_path / "new.py")]
    (tmp_path / "new.py").unlink()
    assert files.changed() == [str(tmp_path / "new.py")]
    assert files.changed() == []
    # Written while it was being loaded.
    assert Files(str(tmp_path), [str(named)], named.stat().st_mtime_ns).changed() == [str(named)]


def test_where_blocked() -> None:
    is_there = threading.Event()
    go_on = threading.Event()

    def block_here() -> None:
        is_there.set()
        go_on.wait(60)

    thread = threading.Thread(target=block_here)
    thread.start()
    try:
        assert is_there.wait(60) and thread.ident is not None
        while "block_here" not in (text := where_blocked(thread.ident, 2.5)):
            time.sleep(0.01)
    finally:
        go_on.set()
        thread.join()
    assert "2.5 s" in text and Path(__file__).name in text and sys.prefix not in text
