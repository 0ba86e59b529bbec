"""Every test that takes `url` or `saver` runs on each database.

HEDDLE_TEST_PG_URL names a PostgreSQL server (tests/lib/with-postgres starts
one); without it those tests are skipped, unless HEDDLE_TEST_REQUIRE_PG is set.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from heddle import HeddleSaver

BACKENDS = ["memory", "sqlite", "postgresql"]


def fresh_url(backend: str, directory: Path) -> str:
    """An unused database."""
    if backend == "memory":
        return "memory:"
    if backend == "sqlite":
        return f"sqlite:{directory / uuid.uuid4().hex}.db"
    server = os.environ.get("HEDDLE_TEST_PG_URL")
    if not server:
        if os.environ.get("HEDDLE_TEST_REQUIRE_PG"):
            pytest.fail("HEDDLE_TEST_PG_URL is not set")
        pytest.skip("HEDDLE_TEST_PG_URL is not set")
    separator = "&" if "?" in server else "?"
    return f"{server}{separator}schema=t{uuid.uuid4().hex}"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(backend: str, tmp_path: Path) -> str:
    return fresh_url(backend, tmp_path)


@pytest.fixture
def saver(url: str) -> Iterator[HeddleSaver]:
    with HeddleSaver.from_conn_string(url) as saver:
        yield saver
