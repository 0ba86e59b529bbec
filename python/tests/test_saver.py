"""Storing and reading by the saver, on every database."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import fresh_url
from heddle import CanonicalSerializer, HeddleError, HeddleSaver, HeddleValueError, __version__
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import BaseModel

TASKS = "__pregel_tasks"


def config(thread: Any = "t", ns: str = "", id: str | None = None, **more: Any) -> Any:
    conf = {"thread_id": thread, "checkpoint_ns": ns, **more}
    return {"configurable": conf if id is None else {**conf, "checkpoint_id": id}}


def checkpoint(values: dict[str, Any], versions: dict[str, Any], **more: Any) -> Any:
    return {
        **empty_checkpoint(),
        "id": str(uuid6()),
        "v": 4,
        "channel_values": values,
        "channel_versions": versions,
        **more,
    }


def put(saver: BaseCheckpointSaver[Any], where: Any, values: dict[str, Any], **more: Any) -> Any:
    versions = {channel: 1 for channel in values}
    return saver.put(where, checkpoint(values, versions, **more), {"step": 1}, versions)


# -- opening and closing -------------------------------------------------------


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


@pytest.mark.parametrize("spelling", ["{}/a.db", "sqlite:{}/a.db", "sqlite://{}/a.db"])
def test_ways_to_name_a_file(spelling: str, tmp_path: Path) -> None:
    with HeddleSaver(spelling.format(tmp_path)) as saver:
        put(saver, config(), {"a": 1})
    assert (tmp_path / "a.db").exists()
    with HeddleSaver(tmp_path / "a.db") as saver:
        assert saver.get(config()) is not None


@pytest.mark.parametrize("name", ["odd ?a=b%20.db", "ünïcode#.db", "a:b.db", "sqlite"])
def test_paths_have_no_special_characters(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    HeddleSaver(tmp_path / name).close()
    assert (tmp_path / name).exists()
    if ":" not in name:
        monkeypatch.chdir(tmp_path)
        (tmp_path / name).unlink()
        HeddleSaver.from_conn_string(name).close()
        assert (tmp_path / name).exists()


def test_memory_url_of_the_stock_savers() -> None:
    with HeddleSaver.from_conn_string(":memory:") as saver:
        put(saver, config(), {"a": 1})
        assert saver.get(config()) is not None


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="memory.*sqlite") as raised:
        HeddleSaver("mysql://localhost/x")
    assert isinstance(raised.value, HeddleError) and raised.value.name == "EINVAL"
    with pytest.raises(HeddleValueError):
        HeddleSaver.from_conn_string("nonsense:x")
    with pytest.raises(HeddleValueError, match="durability"):
        HeddleSaver("memory:?durability=perhaps")
    with pytest.raises(ValueError, match="NUL"):
        HeddleSaver("sqlite:a\0b")


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HeddleError):
        HeddleSaver(tmp_path / "no" / "such" / "directory.db")
    (tmp_path / "corrupt.db").write_bytes(b"this is no database" * 1000)
    with pytest.raises(HeddleError) as raised:
        HeddleSaver(tmp_path / "corrupt.db")
    assert raised.value.code < 0 and str(raised.value)
    assert (tmp_path / "corrupt.db").read_bytes() == b"this is no database" * 1000


def test_an_absent_server_is_an_error() -> None:
    with pytest.raises(HeddleError) as raised:
        HeddleSaver("postgresql://nobody@127.0.0.1:1/none?timeout=1")
    assert raised.value.name in ("EUNAVAILABLE", "EUNSUPPORTED", "EINVAL")


def test_closed_savers_reject_calls(saver: HeddleSaver) -> None:
    put(saver, config(), {"a": 1})
    saver.close()
    saver.close()
    for call in (
        lambda: saver.get_tuple(config()),
        lambda: put(saver, config(), {"a": 1}),
        lambda: saver.put_writes(config(id="x"), [("a", 1)], "task"),
        lambda: list(saver.list(None)),
        lambda: saver.delete_thread("t"),
        lambda: list(saver.list_threads()),
    ):
        with pytest.raises(HeddleError, match="closed") as raised:
            call()
        assert raised.value.name == "ECLOSED"
    assert saver.store.closed


def test_closing_while_a_list_is_open(saver: HeddleSaver) -> None:
    for _ in range(100):
        put(saver, config(), {"a": 1})
    listed = saver.list(config())
    assert next(listed)
    saver.close()
    with pytest.raises(HeddleError, match="closed"):
        list(listed)


def test_dropped_savers_are_closed(tmp_path: Path) -> None:
    code = (
        "import heddle, gc, sys\n"
        "def use(path):\n"
        "    saver = heddle.HeddleSaver(path)\n"
        "    next(saver.list_threads(), None)\n"
        "for n in range(20): use(f'{sys.argv[1]}/{n}.db')\n"
        "kept = heddle.HeddleSaver(sys.argv[1] + '/kept.db')\n"
        "iterator = kept.list(None)\n"
        "next(iterator, None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60)
    assert done.returncode == 0
    assert not list(tmp_path.glob("*.db-wal"))


@pytest.mark.parametrize("backend", ["memory", "sqlite"], indirect=True)
def test_forks_are_refused(saver: HeddleSaver) -> None:
    put(saver, config(), {"a": 1})
    pid = os.fork()
    if pid == 0:
        try:
            saver.get_tuple(config())
        except HeddleError as error:
            saver.close()
            os._exit(0 if "fork" in str(error) else 2)
        except BaseException:
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert saver.get_tuple(config()) is not None


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_a_fork_closes_nothing_of_its_parent(saver: HeddleSaver) -> None:
    put(saver, config(), {"a": 1})
    pid = os.fork()
    if pid == 0:
        before = os.listdir("/proc/self/fd")
        saver.close()
        asyncio.run(saver.aclose())
        os._exit(0 if os.listdir("/proc/self/fd") == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_fork_waits_for_no_thread_of_its_parent() -> None:
    code = (
        "import heddle, os, signal, sys\n"
        "for _ in range(10):\n"
        "    savers = [heddle.HeddleSaver('memory:') for _ in range(20)]\n"
        "    del savers\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        signal.alarm(60)\n"
        "        sys.exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0


def test_setup_may_be_called() -> None:
    HeddleSaver("memory:").setup()


def test_copies_share_the_database(saver: HeddleSaver) -> None:
    for clone in (copy.copy(saver), copy.deepcopy(saver), HeddleSaver(saver.store)):
        put(clone, config(), {"a": 1})
        assert saver.get(config()) == clone.get(config())
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(saver)


# -- put and get ---------------------------------------------------------------


def test_absent_checkpoints_are_none(saver: HeddleSaver) -> None:
    assert saver.get_tuple(config()) is None
    assert saver.get_tuple(config(id="x")) is None
    assert list(saver.list(None)) == []


def test_values_are_read_back(saver: HeddleSaver) -> None:
    first = checkpoint({"m": [HumanMessage("a")], "n": None}, {"m": 1, "n": 1, "gone": 1})
    first["versions_seen"] = {"": {"m": 1}, "__input__": {}, "a|b:c": {"$": "1.0"}}
    first["updated_channels"] = ["m", "n"]
    where = saver.put(config(), first, {"source": "input", "step": -1, "parents": {}}, {"m": 1, "n": 1, "gone": 1})
    assert where == config(id=first["id"])

    second = checkpoint({"m": ["other"], "n": "ignored"}, {"m": 2, "n": 1})
    saver.put(where, second, {"source": "loop", "step": 0}, {"m": 2})
    found = saver.get_tuple(config(user="me", __pregel_x=1))
    assert found is not None
    assert found.config == config(id=second["id"])
    assert found.parent_config == where
    assert found.pending_writes == []
    # n is not new, so it keeps the value of its earlier version.
    assert found.checkpoint == {**second, "channel_values": {"m": ["other"], "n": None}}

    found = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_id": first["id"]}})
    assert found is not None and found.parent_config is None
    assert found.checkpoint == first
    assert found.metadata == {"source": "input", "step": -1, "parents": {}}
    assert list(saver.list(config())) == [saver.get_tuple(config()), found]


@pytest.mark.parametrize("version", [1, 2**60, 1.5, "1", "1.0", "00000000000000000000000000000001.0.5", "ü"])
def test_versions_are_exact(saver: HeddleSaver, version: Any) -> None:
    versions = {"a": version, "$": version}
    item = checkpoint({"a": 1, "$": 2}, versions, versions_seen={"n": versions})
    saver.put(config(), item, {}, versions)
    found = saver.get(config())
    assert found is not None and found == item
    assert type(found["channel_versions"]["a"]) is type(version)


@pytest.mark.parametrize("version", [None, True, [1], {"v": 1}, b"1", float("nan"), float("inf")])
def test_versions_of_other_types_are_refused(saver: HeddleSaver, version: Any) -> None:
    for versions, new in (({"a": version}, {"a": 1}), ({"a": 1}, {"a": version})):
        with pytest.raises((TypeError, ValueError)):
            saver.put(config(), checkpoint({"a": 1}, versions), {}, new)
    assert saver.get_tuple(config()) is None


def test_next_versions() -> None:
    saver = HeddleSaver("memory:")
    stock = InMemorySaver()
    for current in (None, 1, 41, "00000000000000000000000000000009.0.123", 3.0):
        version = saver.get_next_version(current, None)
        assert re.fullmatch(r"\d{32}\.[\d.e-]{14,}", version)
        if not isinstance(current, float):
            assert version[:32] == stock.get_next_version(current, None)[:32]
        assert saver.get_next_version(version, None) > version
    assert len({saver.get_next_version("1.0", None) for _ in range(1000)}) == 1000


def test_odd_ids(saver: HeddleSaver) -> None:
    odd = ["", "a:b|c", "ü", "a\0b", "%_\\'\"", "\udcff", "x" * 500, " "]
    where = {}
    for thread in odd[1:]:
        for ns in odd:
            where[thread, ns] = put(saver, config(thread, ns), {"a:|ü\0": [thread, ns]})
    for (thread, ns), there in where.items():
        found = saver.get_tuple(config(thread, ns))
        assert found is not None and found.config == there
        assert found.checkpoint["channel_values"] == {"a:|ü\0": [thread, ns]}
    assert len(list(saver.list(None))) == len(where)
    assert {info.thread_id for info in saver.list_threads()} == set(odd[1:])


def test_thread_ids_become_text(saver: HeddleSaver) -> None:
    put(saver, config(17), {"a": 1})
    assert saver.get_tuple(config("17")) == saver.get_tuple(config(17)) is not None
    saver.delete_thread(17)  # type: ignore[arg-type]
    assert saver.get_tuple(config(17)) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda saver: saver.get_tuple({"configurable": {}}),
        lambda saver: saver.put({"configurable": {}}, checkpoint({}, {}), {}, {}),
        lambda saver: saver.put_writes(config(), [("a", 1)], "t"),
        lambda saver: saver.put(config(), {"id": "x"}, {}, {}),
        lambda saver: saver.put(config(), checkpoint({}, {}, id=5), {}, {}),
        lambda saver: saver.put(config(), checkpoint({}, {}), {(1, 2): 3}, {}),
        lambda saver: saver.put(config(), checkpoint({"a": object()}, {"a": 1}), {}, {"a": 1}),
        lambda saver: saver.put(config(), checkpoint({}, {1: 1}), {}, {}),
        lambda saver: saver.put_writes(config(id="x"), [("a",)], "t"),
        lambda saver: saver.put_writes(config(id="x"), [(1, 2)], "t"),
        lambda saver: saver.put_writes(config(id="x"), [("a", 1)], None),
        lambda saver: saver.delete_for_runs("not a list"),
        lambda saver: saver.prune(["t"], strategy="perhaps"),
        lambda saver: list(saver.list(config(), filter={"a": object()})),
    ],
)
def test_bad_arguments(saver: HeddleSaver, call: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        call(saver)
    assert list(saver.list(None)) == []


def test_a_value_over_the_limit_is_refused(backend: str, tmp_path: Path) -> None:
    url = fresh_url(backend, tmp_path)
    url += ("&" if "?" in url else "?") + "max_value=1000"
    with HeddleSaver(url) as saver:
        put(saver, config(), {"a": "x" * 900})
        with pytest.raises(HeddleError) as raised:
            put(saver, config(), {"a": "x" * 1100})
        assert raised.value.name == "ELIMIT"
        with pytest.raises(HeddleError):
            saver.put_writes(config(id="x"), [("a", "x" * 1100)], "t")
        assert len(list(saver.list(None))) == 1


def test_later_changes_are_not_stored(saver: HeddleSaver) -> None:
    message = HumanMessage("before")
    values = {"m": [message], "d": {"k": [1]}}
    item = checkpoint(values, {"m": 1, "d": 1})
    where = saver.put(config(), item, {"k": "v"}, {"m": 1, "d": 1})
    saver.put_writes(where, [("m", values["m"])], "task")
    message.content = "after"
    values["m"].append("more")
    values["d"]["k"].append(2)
    item["channel_versions"]["m"] = 9
    found = saver.get_tuple(config())
    assert found is not None
    assert found.checkpoint["channel_values"] == {"m": [HumanMessage("before")], "d": {"k": [1]}}
    assert found.pending_writes == [("task", "m", [HumanMessage("before")])]
    # The reader owns the values that it read.
    found.checkpoint["channel_values"]["m"].clear()
    again = saver.get_tuple(config())
    assert again is not None and again.checkpoint["channel_values"]["m"]


def test_empty_channels_do_not_inherit(saver: HeddleSaver) -> None:
    where = put(saver, config(), {"a": 1})
    saver.put(where, checkpoint({}, {"a": 2}), {}, {"a": 2})
    found = saver.get(config())
    assert found is not None and found["channel_values"] == {}


# -- metadata ------------------------------------------------------------------


def test_metadata_merge_is_the_stock_one(saver: HeddleSaver) -> None:
    where: Any = {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", "user": "u", "n": 1, "__hidden": 1, "o": object()},
        "metadata": {"user": "first", "f": 1.5, "yes": True, "langgraph_step": 3, "run_id": "r"},
    }
    metadata: Any = {"source": "loop", "step": 2, "text": "a\0b", "counters_since_delta_snapshot": {"c": (1, 2)}}
    item = checkpoint({}, {})
    stock = InMemorySaver()
    stock.put(where, item, metadata, {})
    saver.put(where, item, metadata, {})
    expected = stock.get_tuple(where)
    found = saver.get_tuple(where)
    assert expected is not None and found is not None
    assert found.metadata == expected.metadata
    assert found.metadata["user"] == "first"  # type: ignore[typeddict-item]


class Text(str):
    pass


class Whole(int):
    pass


@pytest.mark.parametrize(
    "metadata",
    [
        {"nested": {"a": [1, 2.5, None, True, {"b": "c"}]}},
        {"big": 2**80, "small": -(2**63)},
        {"$": "dollar", "deep": {"$": 1}},
        {"text": 'ü\n"\\', "ü": "key"},
        {"when": datetime(2024, 1, 1, tzinfo=timezone.utc), "m": HumanMessage("x"), "s": {1}},
        {"lone": "\ud800"},
        {},
    ],
)
def test_metadata_is_exact(saver: HeddleSaver, metadata: Any) -> None:
    saver.put(config(), checkpoint({}, {}), metadata, {})
    found = saver.get_tuple(config())
    assert found is not None and found.metadata == metadata


def test_metadata_as_json(saver: HeddleSaver) -> None:
    metadata: Any = {
        1: "int",
        None: "none",
        True: "bool",  # noqa: F601
        1.5: "float",
        "t": Text("sub"),
        "w": Whole(3),
        "tuple": (1, 2),
    }
    saver.put(config(), checkpoint({}, {}), metadata, {})
    found = saver.get_tuple(config())
    assert found is not None
    # 1 and True are one key.
    assert found.metadata == {"1": "bool", "null": "none", "1.5": "float", "t": "sub", "w": 3, "tuple": [1, 2]}


def test_not_a_number_in_metadata(saver: HeddleSaver) -> None:
    saver.put(config(), checkpoint({}, {}), {"x": float("nan"), "y": float("-inf")}, {})  # type: ignore[typeddict-unknown-key]
    found: Any = saver.get_tuple(config())
    assert math.isnan(found.metadata["x"]) and found.metadata["y"] == float("-inf")


# -- list ----------------------------------------------------------------------


def test_list_pages(saver: HeddleSaver) -> None:
    where = config()
    ids = []
    for n in range(150):
        versions = {"n": n + 1}
        where = saver.put(where, checkpoint({"n": n}, versions), {"step": n, "even": n % 2 == 0}, versions)
        saver.put_writes(where, [("w", n)], "task")
        ids.append(where["configurable"]["checkpoint_id"])
    items = list(saver.list(config()))
    assert [item.checkpoint["id"] for item in items] == ids[::-1]
    assert [item.checkpoint["channel_values"]["n"] for item in items] == list(range(149, -1, -1))
    assert all(item == saver.get_tuple(item.config) for item in items[::10])
    assert len(list(saver.list(config(), filter={"even": True}))) == 75
    assert len(list(saver.list(config(), filter={"even": True}, limit=70))) == 70
    assert [i.metadata["step"] for i in saver.list(config(), before=config(id=ids[3]))] == [2, 1, 0]
    assert [i.metadata["step"] for i in saver.list(config(), before=config(id=ids[100]), limit=2)] == [99, 98]
    assert [i.metadata["step"] for i in saver.list(config(id=ids[7]))] == [7]
    for limit in (0, -1):
        assert list(saver.list(config(), limit=limit)) == []
    assert len(list(saver.list(config(), before={"configurable": {}}))) == 150
    with pytest.raises(KeyError):
        list(saver.list({"configurable": {}}))


def test_list_is_lazy(saver: HeddleSaver) -> None:
    for n in range(100):
        put(saver, config(), {"n": n})
    listed = saver.list(config())
    next(listed)
    saver.delete_thread("t")
    # Pages that were not read yet omit deleted checkpoints.
    assert len(list(listed)) < 64


def test_filters(saver: HeddleSaver) -> None:
    for n in range(3):
        saver.put(config(), checkpoint({}, {}), {"n": n, "deep": {"a": n, "b": 1}, "l": [n, 9]}, {})  # type: ignore[typeddict-unknown-key]
    count = lambda filter: len(list(saver.list(None, filter=filter)))  # noqa: E731
    assert count({}) == count(None) == 3
    assert count({"n": 1}) == count({"n": 1.0}) == count({"deep": {"a": 2}}) == 1
    assert count({"deep": {"b": 1}}) == count({"l": [9]}) == 3
    assert count({"n": 5}) == count({"absent": None}) == 0


def test_headers(saver: HeddleSaver) -> None:
    where = put(saver, config(), {"a": "x" * 10000})
    put(saver, where, {"a": 1})
    headers = list(saver.list_headers(config()))
    tuples = list(saver.list(config()))
    for header, item in zip(headers, tuples, strict=True):
        assert header.config == item.config
        assert header.parent_config == item.parent_config
        assert header.metadata == item.metadata
        assert {**header.checkpoint, "channel_values": item.checkpoint["channel_values"]} == item.checkpoint
    assert len(list(saver.list_headers(None, limit=1))) == 1
    assert list(saver.list_headers(None, limit=0)) == []


# -- writes --------------------------------------------------------------------


def test_writes_come_in_the_order_of_tasks(saver: HeddleSaver) -> None:
    where = put(saver, config(), {})
    saver.put_writes(where, [("b", 1), ("a", 2)], "task1", "~__pregel_pull, z")
    saver.put_writes(where, [("c", 3)], "task9", "~__pregel_pull, a")
    saver.put_writes(where, [("d", 4)], "task5")
    found = saver.get_tuple(where)
    assert found is not None
    assert found.pending_writes == [
        ("task5", "d", 4),
        ("task9", "c", 3),
        ("task1", "b", 1),
        ("task1", "a", 2),
    ]


def test_repeated_writes(saver: HeddleSaver) -> None:
    where = put(saver, config(), {})
    saver.put_writes(where, [("a", 1), ("__resume__", [1])], "task")
    saver.put_writes(where, [("a", 2), ("__resume__", [1, 2])], "task")
    saver.put_writes(where, [], "task")
    found = saver.get_tuple(where)
    assert found is not None
    assert sorted(found.pending_writes or []) == [("task", "__resume__", [1, 2]), ("task", "a", 1)]


def test_writes_before_their_checkpoint(saver: HeddleSaver) -> None:
    item = checkpoint({}, {})
    saver.put_writes(config(id=item["id"]), [("a", None)], "task")
    assert saver.get_tuple(config()) is None
    saver.put(config(), item, {}, {})
    found = saver.get_tuple(config())
    assert found is not None and found.pending_writes == [("task", "a", None)]


def test_old_pending_sends_move_to_their_channel(saver: HeddleSaver) -> None:
    parent = put(saver, config(), {"a": 1})
    saver.put_writes(parent, [(TASKS, Send("n", 1)), (TASKS, "two")], "t2", "b")
    saver.put_writes(parent, [(TASKS, "first"), ("a", 5)], "t3", "a")
    for v, versions in ((3, {"a": "7.1", "b": "8.1"}), (1, {}), (4, {"a": "7.1"})):
        item = checkpoint({}, versions, v=v)
        saver.put(parent, item, {}, {})
        for found in (saver.get(config(id=item["id"])), next(saver.list(config())).checkpoint):
            assert found is not None
            if v == 4:
                assert TASKS not in found["channel_values"]
                continue
            assert found["channel_values"][TASKS] == ["first", Send("n", 1), "two"]
            assert found["channel_versions"][TASKS] == ("8.1" if versions else found["channel_versions"][TASKS])
    childless = checkpoint({}, {"a": 99}, v=1)
    saver.put(config(id="nowhere"), childless, {}, {})
    assert saver.get(config(id=childless["id"])) == {**childless, "channel_values": {}}


def test_old_checkpoints_keep_their_own_sends(saver: HeddleSaver) -> None:
    for sends in ([], [Send("n", {"m": HumanMessage("x")})], ["a", {"$": 1}]):
        item = checkpoint({}, {}, v=1, pending_sends=sends)
        saver.put(config(), item, {}, {})
        assert saver.get(config()) == item


# -- serializers ---------------------------------------------------------------


class Untyped:
    def dumps(self, obj: Any) -> bytes:
        return pickle.dumps(obj)

    def loads(self, data: bytes) -> Any:
        return pickle.loads(data)


class Cipher:
    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "xor", bytes(byte ^ 0x55 for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "xor"
        return bytes(byte ^ 0x55 for byte in ciphertext)


@pytest.fixture(
    params=[
        None,
        JsonPlusSerializer(),
        Untyped(),
        EncryptedSerializer(Cipher()),
        EncryptedSerializer(Cipher(), CanonicalSerializer()),
        CanonicalSerializer(Untyped()),  # type: ignore[arg-type]
    ],
    ids=["default", "stock", "untyped", "encrypted", "encrypted canonical", "own fallback"],
)
def serde(request: pytest.FixtureRequest) -> Any:
    return request.param


class Model(BaseModel):
    x: int


def test_serializers(url: str, serde: Any) -> None:
    secret = "the secret words"
    with HeddleSaver(url, serde=serde) as saver:
        values = {"m": [HumanMessage(secret), AIMessage("x")], "o": Model(x=1), "n": None, "b": b"\0"}
        item = checkpoint(values, dict.fromkeys(values, 1), v=1, pending_sends=[Send("n", secret)])
        where = saver.put(config(), item, {}, item["channel_versions"])
        saver.put_writes(where, [("m", {"deep": [secret]}), ("__error__", ValueError("v"))], "task")
        found = saver.get_tuple(config())
        assert found is not None and found.checkpoint == item
        writes = found.pending_writes or []
        assert ("task", "m", {"deep": [secret]}) in writes
        assert [listed.checkpoint for listed in saver.list(None)] == [item]
    if isinstance(serde, EncryptedSerializer) and url.startswith("sqlite:"):
        for file in Path(url[7:]).parent.iterdir():
            assert secret.encode() not in file.read_bytes()


def test_allowlist(url: str) -> None:
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    key = (Model.__module__, "Model")
    for serde in (
        CanonicalSerializer(strict),
        strict,
        EncryptedSerializer(Cipher(), CanonicalSerializer(strict)),
        EncryptedSerializer(Cipher(), strict),
    ):
        saver = HeddleSaver(url, serde=serde)
        put(saver, config(), {"top": Model(x=1), "nested": [Model(x=2)]})
        blocked = saver.get(config())
        assert blocked is not None
        assert blocked["channel_values"] == {"top": {"x": 1}, "nested": [{"x": 2}]}
        clone = saver.with_allowlist([key])
        assert clone is not saver and clone.store is saver.store
        allowed = clone.get(config())
        assert allowed is not None
        assert allowed["channel_values"] == {"top": Model(x=1), "nested": [Model(x=2)]}
        assert saver.get(config()) == blocked
        assert clone.with_allowlist([key]) is clone
        saver.close()
    permissive = HeddleSaver("memory:")
    assert permissive.with_allowlist([key]) is permissive


def test_a_new_serde_takes_effect(saver: HeddleSaver) -> None:
    put(saver, config("a"), {"v": Model(x=1)})
    saver.serde = CanonicalSerializer(JsonPlusSerializer(allowed_msgpack_modules=None))
    found = saver.get(config("a"))
    assert found is not None and found["channel_values"] == {"v": {"x": 1}}


def test_a_failing_serializer_changes_nothing(saver: HeddleSaver) -> None:
    class Failing:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            raise OSError("no")

        def loads_typed(self, data: Any) -> Any:
            raise OSError("no")

    class Wrong:
        def dumps_typed(self, obj: Any) -> Any:
            return b"just bytes"

        def loads_typed(self, data: Any) -> Any:
            return None

    put(saver, config(), {"a": 1})
    saver.serde = Failing()
    with pytest.raises(OSError, match="no"):
        put(saver, config(), {"a": 2})
    with pytest.raises(OSError, match="no"):
        saver.get_tuple(config())
    saver.serde = Wrong()
    with pytest.raises(TypeError, match="dumps_typed"):
        put(saver, config(), {"a": 2})
    assert len(list(saver.list(None))) == 1


# -- threads, principals, retention --------------------------------------------


def test_principals_are_sealed(url: str) -> None:
    with HeddleSaver(url, principal="alice") as alice:
        bob = HeddleSaver(alice.store, principal="bob")
        put(alice, config(), {"a": "alice"})
        put(bob, config(), {"a": "bob"})
        assert [item.checkpoint["channel_values"]["a"] for item in alice.list(None)] == ["alice"]
        assert [info.thread_id for info in bob.list_threads()] == ["t"]
        bob.delete_thread("t")
        assert bob.get_tuple(config()) is None
        found = alice.get(config())
        assert found is not None and found["channel_values"] == {"a": "alice"}
        assert alice.principal == "alice"
        with pytest.raises(HeddleValueError):
            put(HeddleSaver(alice.store, principal="a:b"), config(), {})


def test_threads_and_usage(saver: HeddleSaver) -> None:
    start = datetime.now(timezone.utc) - timedelta(seconds=2)
    for n in range(25):
        where = put(saver, config(f"t{n:02}"), {"a": "x" * n * 100})
        saver.put_writes(where, [("w", 1), ("w", 2)], "task")
    infos = list(saver.list_threads())
    assert [info.thread_id for info in infos] == [f"t{n:02}" for n in range(25)]
    assert all(start < info.created_at <= info.updated_at < start + timedelta(minutes=5) for info in infos)
    assert [info.thread_id for info in saver.list_threads(after="t22")] == ["t23", "t24"]
    usage = saver.thread_usage("t24")
    assert usage.checkpoints == 1 and usage.writes == 2 and usage.bytes > 0
    assert saver.thread_usage("absent") == (0, 0, 0, 0)
    saver.check()
    saver.compact()
    assert len(list(saver.list(None))) == 25


def test_more_threads_than_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heddle.saver._PAGE", 10)
    saver = HeddleSaver("memory:")
    for n in range(35):
        put(saver, config(f"t{n:02}"), {})
    assert [info.thread_id for info in saver.list_threads()] == [f"t{n:02}" for n in range(35)]


def test_retention(saver: HeddleSaver) -> None:
    def fill(thread: str) -> None:
        where = config(thread)
        for n in range(5):
            where = saver.put(where, checkpoint({"n": n}, {"n": n + 1}), {"run_id": f"r{n}"}, {"n": n + 1})
            saver.put_writes(where, [("w", n)], "task")

    def numbers(thread: str) -> list[int]:
        return [item.checkpoint["channel_values"]["n"] for item in saver.list(config(thread))]

    fill("a")
    fill("b")
    saver.copy_thread("a", "c")
    saver.copy_thread("absent", "d")
    assert numbers("c") == [4, 3, 2, 1, 0] and numbers("d") == []
    with pytest.raises(HeddleError) as raised:
        saver.copy_thread("a", "b")
    assert raised.value.name == "EEXISTS"
    saver.delete_for_runs(["r1", "r3", "unknown"])
    assert numbers("a") == numbers("b") == numbers("c") == [4, 2, 0]
    saver.prune(["a", "absent"])
    assert numbers("a") == [4] and numbers("b") == [4, 2, 0]
    found = saver.get_tuple(config("a"))
    assert found is not None and found.pending_writes == [("task", "w", 4)]
    saver.prune(["b"], strategy="delete")
    saver.delete_thread("c")
    saver.prune([])
    saver.delete_for_runs([])
    assert [info.thread_id for info in saver.list_threads()] == ["a"]
    saver.check()


# -- delta channels ------------------------------------------------------------


@pytest.fixture
def chain(saver: HeddleSaver) -> Iterator[list[Any]]:
    """Six checkpoints; b is stored at the third, a as a snapshot at the second."""
    where = config()
    chain = []
    for n in range(6):
        values: dict[str, Any] = {1: {"a": _DeltaSnapshot(["snap"])}, 2: {"b": ["plain"]}}.get(n, {})
        versions = {"a": n + 1, "b": n + 1}
        where = saver.put(where, checkpoint(values, versions, ts=""), {"step": n}, versions)
        saver.put_writes(where, [("a", n), ("b", n), ("c", n)], "t1", "z")
        saver.put_writes(where, [("a", -n)], "t2", "y")
        chain.append(where)
    yield chain


def test_delta_history(saver: HeddleSaver, chain: list[Any]) -> None:
    found = saver.get_delta_channel_history(config=chain[5], channels=["a", "b", "c", "absent"])
    assert list(found) == ["a", "b", "c", "absent"]
    a = [write for n in range(1, 5) for write in (("t2", "a", -n), ("t1", "a", n))]
    assert found["a"] == {"seed": _DeltaSnapshot(["snap"]), "writes": a}
    assert found["b"] == {"seed": ["plain"], "writes": [("t1", "b", n) for n in range(2, 5)]}
    assert found["c"] == {"writes": [("t1", "c", n) for n in range(5)]}
    assert found["absent"] == {"writes": []}
    assert saver.get_delta_channel_history(config=config(), channels=["a"])["a"]["writes"] == a
    assert saver.get_delta_channel_history(config=chain[0], channels=["a"]) == {"a": {"writes": []}}
    assert saver.get_delta_channel_history(config=config("no"), channels=["a"]) == {"a": {"writes": []}}
    assert saver.get_delta_channel_history(config=chain[5], channels=[]) == {}
    generic = BaseCheckpointSaver.get_delta_channel_history(saver, config=chain[5], channels=["a", "b", "c"])
    assert generic == {channel: found[channel] for channel in ("a", "b", "c")}


def test_delta_history_of_a_fork(saver: HeddleSaver, chain: list[Any]) -> None:
    fork = saver.put(chain[3], checkpoint({}, {"a": 9}), {}, {"a": 9})
    found = saver.get_delta_channel_history(config=fork, channels=["b"])
    assert found["b"]["writes"] == [("t1", "b", 2), ("t1", "b", 3)]


# -- threads of the process ----------------------------------------------------


def test_many_threads(saver: HeddleSaver) -> None:
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            where = config(f"t{n % 4}", f"ns{n}")
            for step in range(10):
                versions = {"m": step + 1}
                values = {"m": [HumanMessage(f"{n}-{i}") for i in range(step + 1)]}
                where = saver.put(where, checkpoint(values, versions), {"step": step}, versions)
                saver.put_writes(where, [("m", n)], f"task{n}")
                found = saver.get_tuple(where)
                assert found is not None and found.checkpoint["channel_values"] == values
                assert found.pending_writes == [(f"task{n}", "m", n)]
            assert len(list(saver.list(config(f"t{n % 4}", f"ns{n}")))) == 10
        except BaseException as error:
            failures.append(error)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(24)))
    assert failures == []
    assert len(list(saver.list(None))) == 240
    saver.check()


def test_closing_waits_for_running_calls(url: str) -> None:
    saver = HeddleSaver(url)
    outcomes: list[str] = []
    stored: list[Any] = []

    def work(n: int) -> None:
        while True:
            try:
                stored.append(put(saver, config(f"t{n}"), {"a": "x" * 1000}))
            except HeddleError as error:
                outcomes.append(error.name)
                return

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    while len(stored) < 40:
        pass
    saver.close()
    for thread in threads:
        thread.join()
    assert outcomes == ["ECLOSED"] * 8
    if url != "memory:":
        with HeddleSaver(url) as again:
            assert len(list(again.list_headers(None))) == len(stored)
