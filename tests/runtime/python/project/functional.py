"""The functional API."""

from __future__ import annotations

from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import interrupt


@task
def square(number: int) -> int:
    return number * number


@entrypoint()
def workflow(numbers: list[int], *, previous: Any = None) -> Any:
    squares = [future.result() for future in [square(number) for number in numbers]]
    factor = interrupt({"squares": squares})
    total = sum(squares) * factor + (previous or {}).get("total", 0)
    return entrypoint.final(value={"total": total}, save={"total": total})
