"""One saver, one workload, one line of JSON: the Python side of bench/store.

    python savers.py NAME MESSAGES

The workload is that of a chat agent: a `messages` channel that grows by one 500-byte message a
step, three small channels of which one changes, one put and two put_writes a step; then get_tuple
of the latest and of one by id, and list(limit=10). All savers use their synchronous methods, each
in its own process.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

WORDS = (
    "the agent said that it would look for a better answer when tools return what they found "
    "and the user asked again about weather trains money plans code tests memory threads"
).split()


def text(rng: random.Random, size: int) -> str:
    words: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(WORDS) if rng.random() < 0.8 else f"{rng.randrange(10**6)}"
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


def open_saver(name: str, stack: ExitStack) -> tuple[Any, str]:
    """Returns the saver and the durability of its put."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")))
    postgres = os.environ.get("HEDDLE_TEST_PG_URL", "")
    if name == "stock-memory":
        from langgraph.checkpoint.memory import InMemorySaver

        return InMemorySaver(), "none"
    if name == "stock-sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/stock.db"))
        saver.setup()
        level = saver.conn.execute("PRAGMA synchronous").fetchone()[0]
        return saver, f"WAL, synchronous={level}"
    if name == "stock-postgres":
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver

        with psycopg.connect(postgres, autocommit=True) as conn:
            conn.execute("DROP SCHEMA IF EXISTS stock CASCADE")
            conn.execute("CREATE SCHEMA stock")
        joint = "&" if "?" in postgres else "?"
        saver = stack.enter_context(PostgresSaver.from_conn_string(f"{postgres}{joint}options=-csearch_path%3Dstock"))
        saver.setup()
        return saver, "synchronous_commit=on"

    from heddle import HeddleSaver

    schema = f"bench_{uuid.uuid4().hex[:12]}"
    joint = "&" if "?" in postgres else "?"
    url, durability = {
        "heddle-memory": ("memory:", "none"),
        "heddle-sqlite": (f"sqlite:{folder}/heddle.db", "WAL, synchronous=2"),
        "heddle-postgres": (f"{postgres}{joint}schema={schema}", "synchronous_commit=on"),
    }[name]
    return stack.enter_context(HeddleSaver.from_conn_string(url)), durability


def run(saver: Any, count: int) -> dict[str, float]:
    rng = random.Random(7)
    messages: list[Any] = []
    versions: dict[str, Any] = {}
    config: dict[str, Any] = {"configurable": {"thread_id": str(uuid.UUID(int=7)), "checkpoint_ns": ""}}
    ids: list[str] = []
    spent = cpu = 0.0

    for step in range(count):
        kind = AIMessage if step % 2 else HumanMessage
        message = kind(content=text(rng, 500), id=str(uuid.UUID(int=rng.getrandbits(128))))
        messages = [*messages, message]
        values = {"messages": messages, "topic": "trains", "count": step, "limits": {"tools": 3}}
        version = saver.get_next_version(max(versions.values(), default=None), None)
        changed = {"messages": version, "count": version}
        if step == 0:
            changed |= {"topic": version, "limits": version}
        versions = {**versions, **changed}
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=step))
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = dict(versions)
        checkpoint["versions_seen"] = {"agent": {"messages": version}}
        metadata = {"source": "loop", "step": step, "parents": {}}

        start, cpu_start = time.perf_counter(), time.process_time()
        config = saver.put(config, checkpoint, metadata, changed)
        saver.put_writes(config, [("messages", [message])], str(uuid.UUID(int=2 * step)), "~agent")
        saver.put_writes(config, [("count", step)], str(uuid.UUID(int=2 * step + 1)), "~count")
        spent += time.perf_counter() - start
        cpu += time.process_time() - cpu_start
        ids.append(checkpoint["id"])

    latest = {"configurable": {"thread_id": str(uuid.UUID(int=7)), "checkpoint_ns": ""}}
    by_id = {"configurable": {**latest["configurable"], "checkpoint_id": ids[len(ids) * 3 // 4]}}

    def timed(call: Any, rounds: int) -> float:
        best = float("inf")
        for _ in range(rounds):
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        return best

    found = saver.get_tuple(latest)
    assert found.checkpoint["channel_values"]["messages"] == messages
    return {
        "steps_per_s": count / spent,
        "cpu_ms_per_step": 1000 * cpu / count,
        "get_latest_ms": 1000 * timed(lambda: saver.get_tuple(latest), 15),
        "get_by_id_ms": 1000 * timed(lambda: saver.get_tuple(by_id), 15),
        "list_10_ms": 1000 * timed(lambda: list(saver.list(latest, limit=10)), 7),
    }


def main() -> None:
    name, count = sys.argv[1], int(sys.argv[2])
    with ExitStack() as stack:
        saver, durability = open_saver(name, stack)
        figures = run(saver, count)
    print(json.dumps({"saver": name, "messages": count, "durability": durability, **figures}))


if __name__ == "__main__":
    main()
