"""The storage of a conversation grows with its messages: a one-node chat, 1 KiB + 1 KiB a turn.

The stock savers hold 98 MB (PostgreSQL) and 147 MB (SQLite) after 200 such turns and 25 times that
after 1,000. HEDDLE_TEST_TURNS=1000 measures those, too; most of the time is spent in LangGraph,
which grows with the square of the turns.
"""

from __future__ import annotations

import os
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from conftest import fresh_url
from heddle import HeddleSaver
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

MEGABYTE = 1_000_000
ALPHABET = string.ascii_letters + string.digits + " .,"


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]


class Chat:
    """The conversation, and how many bytes its database takes."""

    def __init__(self, url: str, serde: Any) -> None:
        self.url = url
        self.serde = serde
        self.random = random.Random(1)

    def text(self) -> str:
        return "".join(self.random.choices(ALPHABET, k=1024))

    def open(self) -> HeddleSaver:
        return HeddleSaver(self.url, serde=self.serde) if self.serde else HeddleSaver(self.url)

    def talk(self, turns: int, thread: str = "chat") -> int:
        """Continues for so many turns; returns the length of the conversation."""
        with self.open() as saver:
            builder = StateGraph(State)
            builder.add_node("agent", lambda state: {"messages": AIMessage(self.text())})
            builder.add_edge(START, "agent")
            builder.add_edge("agent", END)
            graph = builder.compile(checkpointer=saver)
            config: Any = {"configurable": {"thread_id": thread}}
            for _ in range(turns):
                graph.invoke({"messages": [HumanMessage(self.text())]}, config)
            return len(graph.get_state(config).values["messages"])

    def size(self) -> int:
        if self.url.startswith("sqlite:"):
            path = Path(self.url.removeprefix("sqlite:"))
            return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
        import psycopg

        server, _, schema = self.url.rpartition("schema=")
        with psycopg.connect(server.rstrip("?&")) as connection:
            row = connection.execute(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
                " JOIN pg_namespace n ON n.oid = relnamespace"
                " WHERE nspname = %s AND relkind = 'r'",
                (schema,),
            ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield fresh_url(str(request.param), tmp_path)


@pytest.fixture(params=["canonical", "msgpack"])
def chat(request: pytest.FixtureRequest, database: str) -> Chat:
    return Chat(database, JsonPlusSerializer() if request.param == "msgpack" else None)


def test_storage_grows_with_the_messages(chat: Chat) -> None:
    long = int(os.environ.get("HEDDLE_TEST_TURNS", "500"))

    with chat.open():
        pass
    unused = chat.size()
    assert chat.talk(200) == 400
    small = chat.size()
    assert chat.talk(long - 200) == 2 * long
    large = chat.size()

    print(f"\n200 turns: {small / MEGABYTE:.2f} MB, {long} turns: {large / MEGABYTE:.2f} MB")
    assert small - unused <= 1.6 * MEGABYTE  # without the empty tables, of which there are more and more
    assert large <= small * 5.5 * long / 1000

    with chat.open() as saver:
        saver.check()
        saver.prune(["chat"], strategy="keep_latest")
        saver.compact()
        saver.check()
        messages = saver.get_tuple({"configurable": {"thread_id": "chat"}})
        assert messages and len(messages.checkpoint["channel_values"]["messages"]) == 2 * long
    pruned = chat.size()
    with chat.open() as saver:
        saver.delete_thread("chat")
        saver.compact()
        assert saver.thread_usage("chat").bytes == 0
    empty = chat.size()
    print(f"after prune: {pruned / MEGABYTE:.2f} MB, after delete: {empty / MEGABYTE:.2f} MB")
    if chat.url.startswith("sqlite:"):
        assert pruned < 0.75 * large
        assert empty - unused < 0.05 * large
    else:  # PostgreSQL keeps the pages and uses them again
        assert chat.talk(200, "another") == 400
        assert chat.size() <= large * 1.02
