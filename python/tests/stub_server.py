"""The server's end of the runtime protocol, on a separate thread, with everything in dicts.

Written from docs/runtime.md and not with the worker's own code, so that the two check each other.
"""

from __future__ import annotations

import json
import queue
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

CALL, ANSWER, ERROR, PIECE, CANCEL, HOLD, GO = range(1, 8)
SPECIAL = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}
PATIENCE = 60


def encode(kind: int, number: int, head: Any, blobs: Any = ()) -> bytes:
    text = json.dumps(head).encode()
    rest = struct.pack("<BBHII", kind, 0, len(blobs), number, len(text))
    rest += b"".join(struct.pack("<I", len(blob)) for blob in blobs)
    rest += text + b"".join(blobs)
    return struct.pack("<I", len(rest)) + rest


@dataclass
class Ended:
    """The result of a call, and its chunks."""

    kind: int = 0
    head: dict[str, Any] = field(default_factory=dict)
    blobs: list[bytes] = field(default_factory=list)
    pieces: list[tuple[dict[str, Any], list[bytes]]] = field(default_factory=list)

    @property
    def output(self) -> Any:
        return json.loads(self.blobs[0]) if self.blobs else None

    def events(self, mode: str, ns: str = "") -> list[Any]:
        return [json.loads(blobs[0]) for head, blobs in self.pieces if head["mode"] == mode and head["ns"] == ns]


class Pending:
    def __init__(self, server: StubServer, number: int) -> None:
        self.number = number
        self.ended = Ended()
        self._server = server
        self._done = threading.Event()
        self._news: queue.Queue[tuple[dict[str, Any], list[bytes]]] = queue.Queue()

    def wait(self) -> Ended:
        assert self._done.wait(PATIENCE), "the call does not end"
        return self.ended

    def next_piece(self) -> tuple[dict[str, Any], list[bytes]]:
        return self._news.get(timeout=PATIENCE)

    def tell(self, kind: int) -> None:
        self._server.send(encode(kind, self.number, {}))

    def take(self, kind: int, head: dict[str, Any], blobs: list[bytes]) -> None:
        if kind == PIECE:
            self.ended.pieces.append((head, blobs))
            self._news.put((head, blobs))
            return
        self.ended.kind, self.ended.head, self.ended.blobs = kind, head, blobs
        self._done.set()


class Thread:
    """The checkpoints of one thread."""

    def __init__(self) -> None:
        self.checkpoints: dict[tuple[str, str], dict[str, Any]] = {}
        self.values: dict[tuple[str, str, str], tuple[str, bytes]] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], list[Any]]] = {}

    def put(self, head: dict[str, Any], blobs: list[bytes]) -> None:
        ns, id = head["ns"], head["id"]
        versions = head["new_versions"]
        for channel, kind, blob in head["values"]:
            self.values[ns, channel, str(versions[channel])] = (kind, blobs[blob])
        self.checkpoints[ns, id] = {
            "parent": head["parent"],
            "checkpoint": blobs[head["checkpoint"]["$blob"]],
            "metadata": blobs[head["metadata"]["$blob"]],
        }

    def put_writes(self, head: dict[str, Any], blobs: list[bytes]) -> None:
        rows = self.writes.setdefault((head["ns"], head["id"]), {})
        for position, (channel, kind, blob) in enumerate(head["values"]):
            idx = SPECIAL.get(channel, position)
            if idx < 0 or (head["task_id"], idx) not in rows:
                rows[head["task_id"], idx] = [
                    head["task_path"], channel, kind, blobs[blob],
                ]  # fmt: skip

    def find(self, ns: str | None, id: str, before: str = "") -> list[tuple[str, str]]:
        keys = [
            key
            for key in self.checkpoints
            if (ns is None or key[0] == ns) and (not id or key[1] == id) and (not before or key[1] < before)
        ]
        return sorted(keys, key=lambda key: key[1], reverse=True)

    def tuple(self, key: tuple[str, str], blobs: list[bytes]) -> dict[str, Any]:
        def blob(data: bytes) -> int:
            blobs.append(data)
            return len(blobs) - 1

        record = self.checkpoints[key]
        versions = json.loads(record["checkpoint"])["channel_versions"]
        stored = {
            channel: self.values[key[0], channel, str(version)]
            for channel, version in versions.items()
            if (key[0], channel, str(version)) in self.values
        }
        return {
            "ns": key[0],
            "id": key[1],
            "parent": record["parent"],
            "checkpoint": {"$blob": blob(record["checkpoint"])},
            "metadata": {"$blob": blob(record["metadata"])},
            "values": [[c, kind, blob(data)] for c, (kind, data) in stored.items()],
            "writes": [
                [task_id, path, idx, channel, kind, blob(data)]
                for (task_id, idx), (path, channel, kind, data) in sorted(
                    self.writes.get(key, {}).items(), key=lambda row: (row[1][0], row[0])
                )
            ],
            "sends": [],
        }

    def history(self, ns: str, id: str, channel: str, blobs: list[bytes]) -> dict[str, Any]:
        found: dict[str, Any] = {"seed": None, "writes": []}
        key = (ns, id or self.find(ns, "")[0][1])
        steps: list[list[Any]] = []
        while parent := self.checkpoints.get(key, {}).get("parent"):
            key = (ns, parent)
            if key not in self.checkpoints:
                break
            rows = []
            for (task_id, idx), (path, name, kind, data) in self.writes.get(key, {}).items():
                if name == channel:
                    blobs.append(data)
                    rows.append([task_id, path, idx, kind, len(blobs) - 1])
            steps.append(sorted(rows, key=lambda row: (row[1], row[0], row[2])))
            versions = json.loads(self.checkpoints[key]["checkpoint"])["channel_versions"]
            value = self.values.get((ns, channel, str(versions.get(channel))))
            if value is not None:
                blobs.append(value[1])
                found["seed"] = [value[0], len(blobs) - 1]
                break
        found["writes"] = [row for step in reversed(steps) for row in step]
        return found


class StubServer:
    """`project` is the server's response to hello."""

    def __init__(self, project: dict[str, Any], key: str = "key") -> None:
        self.socket, self.worker_end = socket.socketpair()
        self.project = project
        self.key = key
        self.threads: dict[str, Thread] = {}
        self.items = InMemoryStore()
        self.asked: list[str] = []
        self.ready: queue.Queue[dict[str, Any]] = queue.Queue()
        self.changed: queue.Queue[list[str]] = queue.Queue()
        self.hello: dict[str, Any] = {}
        self.fail: dict[str, dict[str, Any]] = {}
        self.silent: set[str] = set()  # these are answered when they are cancelled
        self.asked_silently: queue.Queue[str] = queue.Queue()
        self.cancelled: list[int] = []
        self.delegates: list[dict[str, Any]] = []
        self._scopes: dict[int, str] = {}
        self._pending: dict[int, Pending] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join(PATIENCE)
        self.socket.close()

    def send(self, data: bytes) -> None:
        with self._lock:
            self.socket.sendall(data)

    def call(self, head: dict[str, Any], blobs: Any = ()) -> Pending:
        self._number += 1
        pending = Pending(self, self._number)
        self._pending[self._number] = pending
        self._scopes[self._number] = head.get("thread_id") or ""
        self.send(encode(CALL, self._number, head, blobs))
        return pending

    def run(self, graph: str, thread_id: str = "t", **members: Any) -> Pending:
        """A run; its input, when there is one, goes in a blob."""
        head: dict[str, Any] = {
            "op": "run",
            "graph": graph,
            "run_id": "11111111-1111-4111-8111-111111111111",
            "thread_id": thread_id,
            "assistant_id": "22222222-2222-4222-8222-222222222222",
            "attempt": 1,
            "config": {"configurable": {"thread_id": thread_id}, "metadata": {}},
            "modes": ["values"],
            "subgraphs": False,
            "durability": "async",
            **members,
        }
        blobs = []
        if "input" in head:
            blobs.append(json.dumps(head["input"]).encode())
            head["input"] = {"$blob": 0}
        return self.call(head, blobs)

    # -- the other end -----------------------------------------------------------

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            data = self.socket.recv(count - len(parts))
            if not data:
                raise EOFError
            parts += data
        return bytes(parts)

    def _serve(self) -> None:
        try:
            while True:
                (size,) = struct.unpack("<I", self._read(4))
                body = self._read(size)
                kind, zero, count, number, head_size = struct.unpack_from("<BBHII", body)
                assert zero == 0
                lengths = struct.unpack_from(f"<{count}I", body, 12)
                start = 12 + 4 * count
                head = json.loads(body[start : start + head_size])
                start += head_size
                blobs = []
                for length in lengths:
                    blobs.append(body[start : start + length])
                    start += length
                assert start == size
                if kind == CALL:
                    self._answer(number, head, blobs)
                elif kind == CANCEL:
                    self.cancelled.append(number)
                    self.send(encode(ERROR, number, {"type": "Cancelled", "message": "given up"}))
                else:
                    self._pending[number].take(kind, head, blobs)
        except (EOFError, OSError):
            return

    def _answer(self, number: int, head: dict[str, Any], blobs: list[bytes]) -> None:
        op = head["op"]
        self.asked.append(op)
        if op in self.silent:
            self.asked_silently.put(op)
            return
        if op in self.fail:
            self.send(encode(ERROR, number, self.fail[op]))
            return
        answer, answer_blobs = getattr(self, f"_op_{op}")(head, blobs)
        self.send(encode(ANSWER, number, answer, answer_blobs))

    def _thread_of(self, head: dict[str, Any]) -> Thread:
        return self.threads.setdefault(self._scopes[head["call"]], Thread())

    def _op_hello(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        self.hello = head
        assert head["key"] == self.key
        told = {"protocol": 1, "version": head["version"], "worker": 1}
        return {**told, "project": self.project}, []

    def _op_ready(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        self.ready.put(head)
        return {}, []

    def _op_changed(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        self.changed.put(head["files"])
        return {}, []

    def _op_get(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        thread = self._thread_of(head)
        keys = thread.find(head["ns"], head["id"])
        out: list[bytes] = []
        return {"tuple": thread.tuple(keys[0], out) if keys else None}, out

    def _op_list(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        thread = self._thread_of(head)
        wanted = head["filter"].items()
        keys = [
            key
            for key in thread.find(head["ns"], head["id"], head["before"])
            if wanted <= json.loads(thread.checkpoints[key]["metadata"]).items()
        ]
        limit = len(keys) if head["limit"] is None else head["limit"]
        page = keys[: min(limit, 2)]  # small pages, so that there are several
        out: list[bytes] = []
        more = len(page) < min(limit, len(keys))
        return {"tuples": [thread.tuple(key, out) for key in page], "more": more}, out

    def _op_put(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        self._thread_of(head).put(head, blobs)
        return {}, []

    def _op_writes(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        self._thread_of(head).put_writes(head, blobs)
        return {}, []

    def _op_history(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        out: list[bytes] = []
        thread = self._thread_of(head)
        found = {channel: thread.history(head["ns"], head["id"], channel, out) for channel in head["channels"]}
        return {"channels": found}, out

    def _op_delegate(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        value = head["input"]
        if isinstance(value, dict) and "$blob" in value:
            value = json.loads(blobs[value["$blob"]])
        self.delegates.append({**head, "input": value})
        if value == "ask":
            return {"status": "interrupted", "interrupts": [{"value": "why?", "id": "i"}]}, []
        return {"status": "done"}, [json.dumps({"got": value}).encode()]

    def _op_items(self, head: dict[str, Any], blobs: list[bytes]) -> Any:
        results = self.items.batch([_operation(each) for each in head["ops"]])
        return {"results": [_shown(each) for each in results]}, []


def _operation(op: dict[str, Any]) -> Any:
    if op["op"] == "put":
        return PutOp(tuple(op["namespace"]), op["key"], op["value"])
    if op["op"] == "get":
        return GetOp(tuple(op["namespace"]), op["key"])
    if op["op"] == "search":
        return SearchOp(tuple(op["namespace_prefix"]), op["filter"], op["limit"], op["offset"])
    conditions = tuple(MatchCondition(each["match_type"], tuple(each["path"])) for each in op["match_conditions"])
    return ListNamespacesOp(conditions, op["max_depth"], op["limit"], op["offset"])


def _shown(result: Any) -> Any:
    if isinstance(result, list):
        return [_shown(each) for each in result]
    return result.dict() if hasattr(result, "dict") else result
