"""The official Python client, async and sync behind one interface, with a record of the called
methods."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import time

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client

RESOURCES = ("assistants", "threads", "runs", "crons", "store")
called: set[tuple[str, str]] = set()  # (class, method)


def public_methods(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]


def record(kind: type) -> None:
    """Records calls of the class's public methods in `called`, from now on."""
    for name in public_methods(kind):
        method = inspect.getattr_static(kind, name)
        if not hasattr(method, "is_recorded"):
            setattr(kind, name, noting(kind.__name__, name, method))


def noting(kind: str, name: str, method):
    @functools.wraps(method)
    def call(*args, **kwargs):
        called.add((kind, name))
        return method(*args, **kwargs)

    call.is_recorded = True
    return call


class Awaited:
    """A resource of the sync client that looks like one of the async client.

    Each call, and each step of a stream, runs in a thread, so that a test can do other things
    meanwhile.
    """

    def __init__(self, resource):
        self.resource = resource

    def __getattr__(self, name):
        method = getattr(self.resource, name)
        if name in ("stream", "join_stream"):
            return lambda *args, **kwargs: iterate(method(*args, **kwargs))
        return lambda *args, **kwargs: asyncio.to_thread(method, *args, **kwargs)


async def iterate(stream):
    done = object()
    try:
        while (item := await asyncio.to_thread(next, stream, done)) is not done:
            yield item
    finally:
        stream.close()


class AwaitedClient:
    def __init__(self, client):
        self.is_sync = True
        for name in RESOURCES:
            setattr(self, name, Awaited(getattr(client, name)))


@contextlib.asynccontextmanager
async def open_client(kind: str, url: str):
    if kind == "async":
        async with get_client(url=url, api_key=None) as client:
            client.is_sync = False
            for name in RESOURCES:
                record(type(getattr(client, name)))
            yield client
    else:
        with get_sync_client(url=url, api_key=None) as client:
            for name in RESOURCES:
                record(type(getattr(client, name)))
            yield AwaitedClient(client)


async def collect(stream) -> list:
    return [part async for part in stream]


async def opened(stream):
    """Awaits the stream first where the async client requires it (threads.join_stream)."""
    return await stream if inspect.isawaitable(stream) else stream


def human(text: str, **more) -> dict:
    return {"messages": [{"role": "user", "content": text, **more}]}


def texts(values: dict) -> list[str]:
    return [message["content"] for message in values["messages"]]


async def until(check, seconds: float = 60):
    """Repeats the (async) check until its result is true, and returns that."""
    deadline = time.monotonic() + seconds
    while not (found := await check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{check.__name__} did not become true in {seconds} s")
        await asyncio.sleep(0.02)
    return found


@contextlib.contextmanager
def refused(status: int, text: str = ""):
    """The call fails with that status; runs.wait and runs.join raise httpx's error."""
    with pytest.raises(httpx.HTTPStatusError) as caught:
        yield
    assert caught.value.response.status_code == status
    said = [str(caught.value), *getattr(caught.value, "__notes__", [])]
    assert any(text in each for each in said), said
