"""Memory across threads, in the store."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    fact: str
    known: list[str]


async def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
    await store.aput(("facts", "all"), state["fact"], {"text": state["fact"]})
    return {}


def recall(state: State, *, store: BaseStore) -> dict[str, Any]:
    found = store.search(("facts",), limit=100)
    return {"known": sorted(item.value["text"] for item in found)}


builder = StateGraph(State)
builder.add_node("remember", remember)
builder.add_node("recall", recall)
builder.add_edge(START, "remember")
builder.add_edge("remember", "recall")
graph = builder.compile()
