"""The canonical serializer: its output, its results, and the values it leaves to the fallback."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import random
import sys
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from heddle import CanonicalSerializer, Foreign
from heddle._classes import CLASSES, _parts
from langchain_core import messages as lc
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel

SERDE = CanonicalSerializer()
CODEC = SERDE._codec
STOCK = JsonPlusSerializer()


def text(obj: Any) -> Any:
    return json.loads(CODEC.encode(obj))


def again(obj: Any) -> Any:
    return SERDE.loads_typed(SERDE.dumps_typed(obj))


# -- dispatch ------------------------------------------------------------------


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Name(str):
    pass


class Pair(NamedTuple):
    a: int
    b: str


class Model(BaseModel):
    x: int


@dataclass
class Data:
    x: Any


class OwnMessage(HumanMessage):
    mood: str = "calm"


@pytest.mark.parametrize(
    "obj",
    [Model(x=1), Data(2), Color.RED, UUID(int=1), Decimal("1.5"), date(2024, 1, 1), deque([1])],
    ids=repr,
)
def test_a_value_it_cannot_express_goes_to_the_fallback(obj: Any) -> None:
    assert SERDE.dumps_typed(obj) == STOCK.dumps_typed(obj)
    assert again(obj) == obj


@pytest.mark.parametrize("obj", [b"", b"\x00\xff" * 1000])
def test_bytes_as_a_whole_value_are_kept_raw(obj: bytes) -> None:
    assert SERDE.dumps_typed(obj) == ("bytes", obj)
    assert again(obj) == obj


@pytest.mark.parametrize(
    "obj",
    [
        Model(x=1),
        Data({"deep": Model(x=2)}),
        Color.RED,
        Level.LOW,
        Name("sub"),
        OrderedDict(a=1),
        Pair(1, "b"),
        UUID(int=1),
        Decimal("1.50"),
        date(2024, 1, 1),
        timedelta(seconds=3),
        Path("/a"),
        deque([1, 2]),
        OwnMessage("hi", mood="good"),
        HumanMessage("hi", unexpected=1),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_a_nested_value_it_cannot_express_is_foreign(obj: Any) -> None:
    record = text([obj])[0]
    assert record["$"] == "foreign" and record["type"] == "msgpack"
    # Exactly the output of the fallback.
    assert again([obj]) == [STOCK.loads_typed(STOCK.dumps_typed(obj))]


def test_values_around_foreign_records_stay_readable() -> None:
    state = {"messages": [HumanMessage("x")], "model": Model(x=1)}
    assert text(state)["messages"] == [{"$": "message", "type": "human", "content": "x"}]
    assert again(state) == state


def test_output_of_the_fallback_is_read() -> None:
    for obj in (None, {"a": [HumanMessage("x")]}, Model(x=3)):
        assert SERDE.loads_typed(STOCK.dumps_typed(obj)) == obj


def test_a_value_nothing_can_express_is_an_error() -> None:
    with pytest.raises(TypeError):
        SERDE.dumps_typed([lambda: None])
    with pytest.raises(TypeError):
        SERDE.dumps_typed(object())


def test_unknown_types_are_an_error() -> None:
    with pytest.raises(NotImplementedError):
        SERDE.loads_typed(("nonsense", b""))


def test_a_pickle_fallback_is_honoured() -> None:
    serde = CanonicalSerializer(JsonPlusSerializer(pickle_fallback=True))
    obj = {"n": complex(1, 2)}
    assert serde.loads_typed(serde.dumps_typed(obj)) == obj
    with pytest.raises(NotImplementedError):
        SERDE.loads_typed(serde.dumps_typed(obj))


# -- strings and numbers -------------------------------------------------------


@pytest.mark.parametrize("length", [*range(0, 40), 255, 256, 257, 5000])
def test_escapes_at_every_position(length: int) -> None:
    for odd in ('"', "\\", "\n", "\x00", "\x1f", "é", "世", "😀", "\ud800"):
        for position in {0, length // 2, length}:
            string = "a" * position + odd + "b" * (length - position)
            assert again(string) == string
            assert again({"k": [string]}) == {"k": [string]}


def test_random_strings_are_json() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        string = "".join(
            chr(rng.choice([rng.randrange(0x80), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
            for _ in range(rng.randrange(50))
        )
        assert json.loads(CODEC.encode(string)) == string
        assert again(string) == string


def test_random_numbers_come_back() -> None:
    rng = random.Random(8)
    for _ in range(2000):
        number = rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300)
        assert again(number) == number and type(again(number)) is float
        integer = rng.randrange(-(2**70), 2**70) >> rng.randrange(70)
        assert again(integer) == integer and type(again(integer)) is int


def test_bytes_of_every_length() -> None:
    for length in range(70):
        data = random.Random(length).randbytes(length)
        assert again([data, bytearray(data)]) == [data, bytearray(data)]


# -- depth ---------------------------------------------------------------------


def nest(depth: int, make: Any, core: Any = 1) -> Any:
    for _ in range(depth):
        core = make(core)
    return core


@pytest.mark.parametrize("depth", [1, 100, 511, 512])
def test_512_levels_are_plain(depth: int) -> None:
    assert text(nest(depth, lambda obj: [obj])) == nest(depth, lambda obj: [obj])


def deepest(data: bytes) -> int:
    levels = found = 0
    in_string = False
    for char in data.decode():  # these contain no escapes
        in_string ^= char == '"'
        levels += (not in_string) * ((char in "[{") - (char in "]}"))
        found = max(found, levels)
    return found


# How to wrap an object, and how to unwrap it: comparing such depths takes too much recursion.
CONTAINERS: dict[str, tuple[Any, Any]] = {
    "list": (lambda obj: [obj], lambda box: box[0]),
    "dict": (lambda obj: {"k": obj}, lambda box: box["k"]),
    "map": (lambda obj: {1: obj}, lambda box: box[1]),
    "send": (lambda obj: Send("n", obj), lambda box: box.arg),
    "command": (lambda obj: Command(update=obj, goto=["x"]), lambda box: box.update),
    "interrupt": (lambda obj: Interrupt(obj, "i"), lambda box: box.value),
}


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("core", [1, 2**60, b"x", {1}, [], Decimal(1)], ids=repr)
def test_deeper_values_use_the_fallback_and_are_read_back(kind: str, core: Any) -> None:
    wrap, unwrap = CONTAINERS[kind]
    levels = 3 if kind == "map" else 1
    for depth in (*range(505 // levels, 516 // levels + 2), 560 // levels):
        tag, data = SERDE.dumps_typed(nest(depth, wrap, core))
        assert tag == "hd1" and deepest(data) <= 512
        found = SERDE.loads_typed((tag, data))
        for _ in range(depth):
            assert type(found) is type(wrap(1))
            found = unwrap(found)
        assert found == core and type(found) is type(core)


def test_a_message_too_deep_falls_back() -> None:
    message = ToolMessage("c", tool_call_id="t", artifact={1})
    data = SERDE.dumps_typed(nest(510, lambda obj: [obj], message))[1]
    assert deepest(data) <= 512 and b'"foreign"' in data
    inner = SERDE.loads_typed(("hd1", data))
    for _ in range(510):
        (inner,) = inner
    assert inner == message


def test_cycles_are_an_error() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises((TypeError, ValueError, RecursionError)):
        SERDE.dumps_typed(cycle)


def test_513_levels_are_refused() -> None:
    with pytest.raises(ValueError):
        CODEC.decode(b"[" * 513 + b"]" * 513)


# -- messages ------------------------------------------------------------------

CALL = {"name": "n", "args": {"a": [1, None]}, "id": "c", "type": "tool_call"}
BAD_CALL = {"name": "n", "args": "{", "id": "c", "error": "e", "type": "invalid_tool_call"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
RAW_CALL = {"id": "r", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
COMMON: list[dict[str, Any]] = [
    {},
    {"id": "i"},
    {"name": "n"},
    {"id": "i", "name": "n", "additional_kwargs": {"k": {"deep": [1]}}},
    {"response_metadata": {"model": "m", "when": datetime(2024, 1, 1)}},
    {"additional_kwargs": {1: 2, "$": 3}},
]
CONTENTS: list[Any] = ["", "text", [], ["a", {"type": "text", "text": "b"}], [{"$": 1}]]
OWN: dict[str, list[dict[str, Any]]] = {
    "AIMessage": [
        {},
        {"tool_calls": [CALL, CALL]},
        {"tool_calls": [{"name": "n", "args": {}, "id": None}]},
        {"invalid_tool_calls": [BAD_CALL]},
        {"usage_metadata": USAGE},
        {"usage_metadata": {**USAGE, "input_token_details": {"audio": 1, "own": 2}, "own": 3}},
        {"additional_kwargs": {"tool_calls": [RAW_CALL]}},
        {"additional_kwargs": {"tool_calls": [RAW_CALL]}, "tool_calls": [CALL]},
    ],
    "ToolMessage": [
        {"tool_call_id": "t"},
        {"tool_call_id": "t", "status": "error", "artifact": {"a": {1, 2}}},
        {"tool_call_id": "t", "artifact": [HumanMessage("in there")]},
    ],
    "FunctionMessage": [{"name": "f"}],
    "ChatMessage": [{"role": "r"}],
    "AIMessageChunk": [
        {},
        {"tool_calls": [CALL]},
        {"tool_call_chunks": [{"name": "n", "args": "{}", "id": "c", "index": 0}]},
        {"tool_call_chunks": [{"name": "n", "args": "{", "id": None, "index": None}]},
        {"chunk_position": "last", "usage_metadata": USAGE},
    ],
    "ToolMessageChunk": [{"tool_call_id": "t", "status": "error"}],
    "FunctionMessageChunk": [{"name": "f"}],
    "ChatMessageChunk": [{"role": "r"}],
}
CLASSES_OF_MESSAGES = [
    name
    for name in dir(lc)
    if name.endswith(("Message", "MessageChunk"))
    and name not in ("AnyMessage", "BaseMessage")
    and not name.startswith(("BaseMessage", "Remove"))
]


def all_messages() -> list[BaseMessage]:
    made: list[BaseMessage] = [RemoveMessage(id="x"), RemoveMessage(id="__remove_all__", name="n")]
    for name in CLASSES_OF_MESSAGES:
        for own in OWN.get(name, [{}]):
            for common in COMMON:
                for content in CONTENTS:
                    fields = {**common, **own}
                    fields["additional_kwargs"] = {
                        **common.get("additional_kwargs", {}),
                        **own.get("additional_kwargs", {}),
                    }
                    if not fields["additional_kwargs"]:
                        del fields["additional_kwargs"]
                    made.append(getattr(lc, name)(content=content, **copy.deepcopy(fields)))
    return made


MESSAGES = all_messages()


def test_every_message_is_a_record() -> None:
    assert len(MESSAGES) > 500 and len({type(message) for message in MESSAGES}) == 13
    for message in MESSAGES:
        assert text(message)["$"] == "message", message


def test_messages_come_back_equal() -> None:
    for message in MESSAGES:
        found = again(message)
        assert type(found) is type(message)
        assert found == message
        assert found.__dict__ == message.__dict__
        assert list(found.__dict__) == list(message.__dict__)
        assert found.model_dump() == message.model_dump()
        assert found.model_dump_json() == message.model_dump_json()
        assert found.model_copy(deep=True) == message
        assert repr(found) == repr(message)


def test_the_bypass_equals_the_constructor() -> None:
    for cls in {type(message) for message in MESSAGES}:
        texts = [CODEC.encode(message) for message in MESSAGES if type(message) is cls]
        short = [_parts(CODEC.decode(text)) for text in texts]
        CLASSES.set_bypass(cls, False)
        try:
            assert short == [_parts(CODEC.decode(text)) for text in texts]
        finally:
            CLASSES.set_bypass(cls, True)


def test_the_bypass_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the installed versions; a release that changes messages shows up here."""
    calls = []
    for cls in (HumanMessage, AIMessage, ToolMessage, SystemMessage, ChatMessage, FunctionMessage):
        monkeypatch.setattr(cls, "__init__", lambda self, *a, **k: calls.append(type(self)))
    for record in (
        b'{"$":"message","type":"human","content":"x","id":"i"}',
        b'{"$":"message","type":"ai","content":"x","tool_calls":[{"name":"n","args":{},"id":"c","type":"tool_call"}]}',
        b'{"$":"message","type":"tool","content":"x","tool_call_id":"i"}',
    ):
        CODEC.decode(record)
    assert calls == []


@pytest.mark.parametrize(
    "record",
    [
        {"type": "ai", "content": "", "tool_calls": [{"name": "n", "args": {}, "id": "c"}]},
        {"type": "ai", "content": "", "tool_calls": [{**CALL, "extras": {"x": 1}}]},
        {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [RAW_CALL]}},
        {"type": "ai", "content": "", "usage_metadata": {**USAGE, "total_tokens": 3.0}},
        {"type": "ai", "content": "", "invalid_tool_calls": [{"name": "n", "args": "", "id": "c", "error": None}]},
        {"type": "tool", "content": "x", "tool_call_id": "t", "status": "success"},
        {"type": "human", "content": "x", "id": None},
        {"type": "human", "content": "x", "of_another_version": 1},
    ],
    ids=json.dumps,
)
def test_messages_of_other_runtimes_equal_the_constructors(record: dict[str, Any]) -> None:
    found = CODEC.decode(json.dumps({"$": "message", **record}).encode())
    fields = {key: value for key, value in record.items() if key != "type"}
    made = {"ai": AIMessage, "tool": ToolMessage, "human": HumanMessage}[record["type"]](**fields)
    assert _parts(found) == _parts(made)


def test_messages_share_nothing() -> None:
    first, second = again([HumanMessage("a"), HumanMessage("b")])
    first.additional_kwargs["x"] = 1
    first.response_metadata["y"] = 2
    assert second.additional_kwargs == {} and second.response_metadata == {}
    first.extra = 3
    assert not hasattr(second, "extra")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_changed_messages_are_written_in_their_new_state() -> None:
    message = AIMessage("a", id="i")
    message.content = [{"type": "text", "text": "b"}]
    message.tool_calls.append(CALL)  # type: ignore[arg-type]
    assert again(message) == message
    message.id = 5  # type: ignore[assignment]
    assert text([message])[0]["$"] == "foreign"


def test_a_reordered_message_is_still_a_record() -> None:
    message = HumanMessage("a", id="i")
    content = message.__dict__.pop("content")
    message.__dict__["content"] = content
    assert text(message) == {"$": "message", "type": "human", "content": "a", "id": "i"}


# -- records of other runtimes -------------------------------------------------


def test_records_of_other_runtimes_are_kept() -> None:
    record = b'{"$":"later","v":[1.50,{"$":"later"}]}'
    found = CODEC.decode(b"[" + record + b"]")[0]
    assert found == Foreign(record) and hash(found) == hash(Foreign(record))
    assert CODEC.encode({"x": found}) == b'{"x":' + record + b"}"
    assert pickle.loads(pickle.dumps(found)) == found
    assert SERDE.dumps_typed(found) == ("hd1", record)


def test_foreign_bytes_of_javascript_are_kept() -> None:
    record = b'{"$":"foreign","type":"json","v":"e30="}'
    assert SERDE.dumps_typed(CODEC.decode(record)) == ("hd1", record)


# -- behaviour -----------------------------------------------------------------


def test_a_change_during_writing_is_an_error_or_harmless() -> None:
    class Meddler:
        def __init__(self, victim: Any) -> None:
            self.victim = victim

    class Serde:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            obj.victim.clear()
            gc.collect()
            return "gone", b""

        def loads_typed(self, data: Any) -> Any:
            return None

    codec = CanonicalSerializer(Serde())._codec
    items: list[Any] = []
    items += [Meddler(items), *("x" * i for i in range(100))]
    assert json.loads(codec.encode(items))[0]["$"] == "foreign"
    table: dict[str, Any] = {}
    table.update({"a": Meddler(table), **{str(i): "y" * i for i in range(100)}})
    with pytest.raises(RuntimeError):
        codec.encode(table)


def test_nothing_leaks() -> None:
    obj = {
        "m": [*MESSAGES[:50]],
        "odd": [2**70, float("nan"), "\ud800", {1: {2}}, b"x", ValueError("v"), datetime(2024, 1, 1)],
        "lg": [Send("n", 1), Command(goto="x"), Interrupt(1, "i"), Model(x=1), Color.RED],
    }
    data = SERDE.dumps_typed(obj)
    for _ in range(3):
        SERDE.loads_typed(SERDE.dumps_typed(obj))
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(50):
        SERDE.loads_typed(data)
        SERDE.dumps_typed(obj)
        with pytest.raises(ValueError):
            CODEC.decode(data[1][:-1] + b',{"$":"set"}]')
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


def test_decoding_leaves_the_collector_as_it_was() -> None:
    data = SERDE.dumps_typed([HumanMessage("x" * 100), Model(x=1)] * 100)
    assert gc.isenabled()
    SERDE.loads_typed(data)
    assert gc.isenabled()
    gc.disable()
    try:
        SERDE.loads_typed(data)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_can_be_copied() -> None:
    for clone in (copy.copy(SERDE), copy.deepcopy(SERDE)):
        assert clone.loads_typed(SERDE.dumps_typed([HumanMessage("x")])) == [HumanMessage("x")]


def test_aware_datetimes() -> None:
    zone = timezone(-timedelta(hours=3, minutes=30))
    for moment in (
        datetime(1, 1, 1),
        datetime.max,
        datetime(2024, 2, 29, 23, 59, 59, 1, tzinfo=zone),
        datetime(2024, 2, 29, tzinfo=timezone(timedelta(seconds=3601))),
    ):
        assert again(moment) == moment and again(moment).utcoffset() == moment.utcoffset()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-01-02T03:04:05.6Z", datetime(2024, 1, 2, 3, 4, 5, 600000, timezone.utc)),
        ("2024-01-02T03:04:05.123456", datetime(2024, 1, 2, 3, 4, 5, 123456)),
    ],
)
def test_datetimes_of_other_runtimes(given: str, expected: datetime) -> None:
    assert CODEC.decode(json.dumps({"$": "datetime", "v": given}).encode()) == expected


def test_times_that_python_cannot_represent_are_kept() -> None:
    for given in ("-000001-01-01T00:00:00Z", "2024-01-02T03:04:05.123456789Z", "0000-01-01T00:00:00"):
        record = json.dumps({"$": "datetime", "v": given}, separators=(",", ":")).encode()
        assert CODEC.decode(record) == Foreign(record)
