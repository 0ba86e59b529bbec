"""The project's graphs, ready to run: each with the run's own saver and store."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.pregel import Pregel
from pydantic import BaseModel

from heddle.runtime.loader import Source
from heddle.runtime.saver import RuntimeSaver, Scope
from heddle.runtime.store import RuntimeStore
from heddle.serializer import CanonicalSerializer

Graph = Pregel[Any, Any, Any, Any]


class User(dict[str, Any]):
    """The authenticated user: members as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def identity(self) -> str:
        return str(self["identity"])

    @property
    def is_authenticated(self) -> bool:
        return bool(self.get("is_authenticated", True))

    @property
    def display_name(self) -> str:
        return str(self.get("display_name") or self["identity"])

    @property
    def permissions(self) -> list[str]:
        return list(self.get("permissions") or ())


def user_of(value: Any) -> Any:
    return User(value) if isinstance(value, dict) and "identity" in value else value


class Entry:
    """A graph of the project under its id."""

    def __init__(self, source: Source) -> None:
        self.id = source.id
        self._source = source

    @property
    def compiled(self) -> Graph | None:
        return self._source.compiled

    @asynccontextmanager
    async def open(
        self, config: dict[str, Any], scope: Scope, access: str, context: Any = None
    ) -> AsyncIterator[Graph]:
        """The graph; a factory builds it with this config."""
        if self._source.compiled is not None:
            yield self._source.compiled
            return

        def runtime() -> Any:
            return _server_runtime(config, scope, access, context)

        async with self._source.open(config, runtime) as graph:
            yield graph


def _server_runtime(config: dict[str, Any], scope: Scope, access: str, context: Any) -> Any:
    from langgraph_sdk import runtime

    members: dict[str, Any] = {
        "access_context": access,
        "user": config.get("configurable", {}).get("langgraph_auth_user"),
        "store": RuntimeStore(scope),
    }
    if access == "threads.create_run":
        return runtime._ExecutionRuntime(context=context, **members)
    return runtime._ReadRuntime(**members)


def bind(graph: Graph, graph_id: str, scope: Scope, serde: CanonicalSerializer) -> Graph:
    """The same graph with this run's saver and store. Cheap: done for every run."""
    bound = object.__new__(type(graph))
    bound.__dict__.update(graph.__dict__)
    bound.checkpointer = RuntimeSaver(scope, serde)
    bound.store = RuntimeStore(scope)
    if bound.name == "LangGraph":
        bound.name = graph_id
    return bound


def context_of(graph: Graph, context: Any, configurable: dict[str, Any]) -> Any:
    """The run's context, without members that the graph's schema lacks.

    Clients without context support pass its members in the configurable.
    """
    schema = graph.context_schema
    if schema is None:
        return context
    names = _members(schema)
    if not context and names:
        context = {k: v for k, v in configurable.items() if k in names} or context
    if isinstance(context, dict):
        return context if not names else {k: v for k, v in context.items() if k in names}
    if context is None:
        # A schema whose members all have defaults yields a context without input.
        try:
            return schema()
        except Exception:
            return None
    return context


def _members(schema: Any) -> frozenset[str] | None:
    if dataclasses.is_dataclass(schema):
        return frozenset(each.name for each in dataclasses.fields(schema) if each.init)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        if schema.model_config.get("extra") == "allow":
            return None
        aliases = (each.alias for each in schema.model_fields.values() if each.alias)
        return frozenset((*schema.model_fields, *aliases))
    hints = getattr(schema, "__annotations__", None)
    return frozenset(hints) if hints else None
