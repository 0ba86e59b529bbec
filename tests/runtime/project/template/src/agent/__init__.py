"""An agent that reasons and acts, laid out as LangGraph's templates are."""

from agent.graph import graph

__all__ = ["graph"]
