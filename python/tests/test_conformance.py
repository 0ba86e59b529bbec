"""The official conformance package: every capability, on every database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conftest import fresh_url
from heddle import HeddleSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

# Releases differ: those with delta channels have 8 more tests.
COUNTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
    "delta_channel_history": 8,
}


async def test_all_capabilities(backend: str, tmp_path: Path) -> None:
    @checkpointer_test(name=f"HeddleSaver on {backend}")
    async def fresh() -> AsyncIterator[HeddleSaver]:
        async with HeddleSaver.from_conn_string(fresh_url(backend, tmp_path)) as saver:
            yield saver

    fresh_url(backend, tmp_path)  # skips here, not inside
    report = await validate(fresh)
    counts = {name: result.tests_passed for name, result in report.results.items()}
    failures = [failure for result in report.results.values() for failure in result.failures]

    assert failures == []
    assert counts == {capability.value: COUNTS[capability.value] for capability in Capability}
    assert sum(counts.values()) in (81, 89)
    assert all(result.tests_skipped == 0 for result in report.results.values())
    assert report.conformance_level() == "FULL"


@pytest.mark.parametrize("method", ["aput", "aget_delta_channel_history", "prune"])
def test_overrides(method: str) -> None:
    assert method in vars(HeddleSaver)
