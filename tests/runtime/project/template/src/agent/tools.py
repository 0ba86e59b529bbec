"""The tools of the agent."""

from collections.abc import Callable
from typing import Any

from langgraph.runtime import get_runtime

from agent.context import Context


async def search(query: str) -> dict[str, Any]:
    """Search for something."""
    context = get_runtime(Context).context
    return {"query": query, "most": int(context.most_results)}


TOOLS: list[Callable[..., Any]] = [search]
