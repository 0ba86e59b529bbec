"""Work that is spread over parallel tasks, and gathered. A builder: the runtime compiles it."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    words: list[str]
    parts: Annotated[list[str], operator.add]
    total: int


def spread(state: State) -> list[Send]:
    return [Send("work", {"word": word, "place": i}) for i, word in enumerate(state["words"])]


def work(task: dict[str, Any]) -> dict[str, Any]:
    get_stream_writer()({"at": task["word"]})
    return {"parts": [f"{task['place']}:{task['word'].upper()}"]}


def gather(state: State) -> dict[str, Any]:
    return {"total": sum(len(part) for part in state["parts"])}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_node("gather", gather)
builder.add_conditional_edges(START, spread, ["work"])
builder.add_edge("work", "gather")
