"""Fixtures: PostgreSQL servers, clusters, scripted models, effects that count."""

from __future__ import annotations

from pathlib import Path

import pytest
from bosses import AFTER_TOOLS, BOSS, agent
from cluster import Cluster
from counting import Counter
from gate import Gate
from postgres import Postgres
from programs import Mock, collect
from server import GRAPHS

OWN = Path(__file__).resolve().parent / "lib/graphs"
GATE = {"kind": "http", "url": "{{config.gate}}", "timeout_ms": 600000}
# Calls other assistants once it is through its gate.
MEMBER = agent([AFTER_TOOLS, {"content": "", "tool_calls": "{{config.calls}}"}])
MEMBER = {
    **MEMBER,
    "nodes": {**MEMBER["nodes"], "gate": GATE},
    "edges": [["__start__", "gate"], ["gate", "model"], *MEMBER["edges"][1:]],
}


def graphs(**more) -> dict:
    """The graphs of tests/api, those of this group, and more."""
    files = [*sorted(GRAPHS.glob("*.json")), *sorted(OWN.glob("*.json"))]
    return {path.stem: path for path in files} | {"boss": BOSS, "member": MEMBER} | more


@pytest.fixture(scope="session")
def postgres():
    with Postgres() as running:
        yield running


@pytest.fixture(scope="module")
def shared(postgres):
    """Three servers for all tests of a file that do not damage them."""
    with Cluster(postgres, graphs=graphs()) as running:
        yield running


@pytest.fixture
def cluster(request, postgres):
    """cluster({"name": graph}, size=…, lease=…, …): a Cluster of its own, with more graphs."""
    made = []

    def create(more: dict | None = None, **options) -> Cluster:
        running = Cluster(postgres, graphs=graphs(**(more or {})), **options)
        running.__enter__()
        made.append(running)
        return running

    yield create
    for each in made:
        if request.node.has_failed:
            each.show_logs()
            each.remove()
        else:
            each.__exit__(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Lets fixtures know whether the test has failed."""
    report = yield
    item.has_failed = getattr(item, "has_failed", False) or report.failed
    return report


@pytest.fixture
def gate():
    with Gate() as made:
        yield made


@pytest.fixture
def counter():
    with Counter() as made:
        yield made


@pytest.fixture
def mock():
    yield from collect(Mock)
