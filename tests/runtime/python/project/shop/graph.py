"""A package with relative imports, and a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from .prices import PRICES


@dataclass
class Context:
    currency: str = "EUR"
    factor: int = 1


class State(TypedDict, total=False):
    item: str
    price: str


def quote(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    return {"price": f"{PRICES[state['item']] * context.factor} {context.currency}"}


builder = StateGraph(State, context_schema=Context)
builder.add_node("quote", quote)
builder.add_edge(START, "quote")
graph = builder.compile()
