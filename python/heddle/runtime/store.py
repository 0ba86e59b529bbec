"""The store of graphs (`BaseStore`): the server keeps its items."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from heddle.runtime.render import render
from heddle.runtime.saver import Scope


class RuntimeStore(BaseStore):
    """Items of the run's user, through the server."""

    supports_ttl = True

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        if not operations:
            return []
        answer = self._scope.link.call_sync(self._head(operations))
        return _results(operations, answer.head["results"])

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        if not operations:
            return []
        answer = await self._scope.link.call(self._head(operations))
        return _results(operations, answer.head["results"])

    def _head(self, ops: list[Op]) -> bytes:
        return render(
            {
                "op": "items",
                "call": self._scope.number,
                "ops": [_operation(op) for op in ops],
            }
        )


def _operation(op: Op) -> dict[str, Any]:
    if isinstance(op, GetOp):
        return {
            "op": "get",
            "namespace": op.namespace,
            "key": op.key,
            "refresh_ttl": op.refresh_ttl,
        }
    if isinstance(op, PutOp):
        return {
            "op": "put",
            "namespace": op.namespace,
            "key": op.key,
            "value": op.value,
            "index": op.index,
            "ttl": op.ttl,
        }
    if isinstance(op, SearchOp):
        return {
            "op": "search",
            "namespace_prefix": op.namespace_prefix,
            "filter": op.filter,
            "limit": op.limit,
            "offset": op.offset,
            "query": op.query,
            "refresh_ttl": op.refresh_ttl,
        }
    if isinstance(op, ListNamespacesOp):
        return {
            "op": "list_namespaces",
            "match_conditions": [
                {"match_type": each.match_type, "path": each.path} for each in op.match_conditions or ()
            ],
            "max_depth": op.max_depth,
            "limit": op.limit,
            "offset": op.offset,
        }
    raise TypeError(f"not an operation of a store: {op!r}")


def _results(ops: list[Op], results: list[Any]) -> list[Result]:
    return [_result(op, each) for op, each in zip(ops, results, strict=True)]


def _result(op: Op, result: Any) -> Result:
    if isinstance(op, GetOp):
        return None if result is None else Item(**_members(result))
    if isinstance(op, SearchOp):
        return [SearchItem(**_members(each), score=each.get("score")) for each in result]
    if isinstance(op, ListNamespacesOp):
        return [tuple(each) for each in result]
    return None


def _members(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        "value": item["value"],
        "created_at": _moment(item["created_at"]),
        "updated_at": _moment(item["updated_at"]),
    }


def _moment(value: str | datetime) -> datetime:
    if isinstance(value, datetime):
        return value
    moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
