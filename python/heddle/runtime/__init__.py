"""Runs the graphs of a langgraph.json for a Heddle server (docs/runtime.md).

The server starts it: `python -m heddle.runtime`. Graphs may call other
assistants of the server:

    from heddle.runtime import assistant

    async def research(state):
        found = await assistant("researcher").ainvoke({"topic": state["topic"]})
        return {"notes": found["notes"]}
"""

from heddle.runtime.delegate import Assistant, DelegateError, assistant

__all__ = ["Assistant", "DelegateError", "assistant"]
