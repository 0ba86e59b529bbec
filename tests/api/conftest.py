"""Fixtures of the Python suites: servers, clients and helpers."""

from __future__ import annotations

import uuid

import clients
import httpx
import pytest
from server import Server, is_peer


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="the whole suite runs: check that nothing was left out")


def pytest_collection_modifyitems(items):
    # test_every_method.py checks what the other tests called, so it runs last.
    items.sort(key=lambda item: item.path.name == "test_every_method.py")
    for item in items:
        mark = item.get_closest_marker("beyond_peer")
        if mark and is_peer():
            item.add_marker(pytest.mark.skip(reason=f"the peer: {mark.args[0]}"))


@pytest.fixture(scope="session")
def server():
    """One server for all tests that do not damage it. It must also stop cleanly."""
    with Server.create() as running:
        yield running


@pytest.fixture
def own_server():
    """A server to be stopped, killed and restarted."""
    running = Server.create()
    try:
        yield running.start()
        running.stop()
    finally:
        running.remove()


@pytest.fixture
def http(server):
    """Plain HTTP."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(params=["async", "sync"])
async def client(request, server):
    """The official client, async and sync; calls of the sync one are awaited too (clients.Awaited)."""
    async with clients.open_client(request.param, server.url) as client:
        yield client


@pytest.fixture
async def thread(client) -> str:
    return (await client.threads.create())["thread_id"]


@pytest.fixture
def unknown() -> str:
    return str(uuid.uuid4())
