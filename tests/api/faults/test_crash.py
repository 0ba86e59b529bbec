"""kill -9 with 200 runs in flight: every acknowledged run exists afterwards and completes."""

import asyncio
import contextlib
import itertools
import json
import random

import httpx
import pytest
from load import STATES, comes_to_rest
from plain import events, human, texts

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

ROUNDS = 3
chance = random.Random(1)
DURABILITY = itertools.cycle(("sync", "async", "exit"))
NAPPERS, NAPS_EACH = 24, 6  # threads, and pending runs on each
WAITERS, READERS = 40, 40
IN_FLIGHT = NAPPERS * NAPS_EACH + WAITERS + READERS
ACKNOWLEDGED = IN_FLIGHT // 3  # runs in each round, at least; the naps alone are more and return at once


def is_busy(answer: httpx.Response) -> bool:
    """The store stayed busy for too long on a slow machine; nothing was acknowledged."""
    return answer.status_code == 503 and "retry-after" in answer.headers


class World:
    """The responses that clients received, over all crashes."""

    def __init__(self, http: httpx.AsyncClient):
        self.http = http
        self.runs: dict[str, str] = {}  # run to thread: all acknowledged runs
        self.values: dict[str, dict] = {}  # thread to the last response of `wait`
        self.seen: dict[str, dict[int, tuple]] = {}  # thread to its events by number
        self.resumable: set[str] = set()
        self.nappers: list[str] = []
        self.waiters: list[str] = []
        self.readers: list[str] = []

    async def make_threads(self) -> None:
        for group, count in ((self.nappers, NAPPERS), (self.waiters, WAITERS), (self.readers, READERS)):
            for _ in range(count):
                group.append((await self.http.post("/threads", json={})).json()["thread_id"])

    async def post(self, thread: str, kind: str, **body) -> httpx.Response | None:
        try:
            path = f"/threads/{thread}/runs{kind}"
            answer = await self.http.post(path, json={"durability": next(DURABILITY), **body})
        except httpx.TransportError:
            return None  # nothing was acknowledged
        if is_busy(answer):
            return None
        assert answer.status_code == 200, answer.text
        return answer

    async def nap(self, thread: str) -> None:
        body = {"assistant_id": "nap", "input": {"ms": chance.randrange(200)}}
        if answer := await self.post(thread, "", **body):
            self.runs[answer.json()["run_id"]] = thread

    async def wait(self, thread: str) -> None:
        graph = chance.choice(("echo", "slow"))
        if answer := await self.post(thread, "/wait", assistant_id=graph, input=human(f"to {graph}")):
            with contextlib.suppress(ValueError):  # truncated
                values = answer.json()
                self.values[thread] = values
                self.runs[answer.headers["content-location"].rsplit("/", 1)[1]] = thread

    def see(self, thread: str, frames: str) -> None:
        """An event id always has the same event."""
        known = self.seen.setdefault(thread, {})
        for name, data, number in events(frames[: frames.rfind("\n\n") + 2]):
            if number is not None:
                assert known.setdefault(int(number), (name, data)) == (name, data), (thread, number)

    async def read(self, method: str, path: str, thread: str, **options) -> None:
        """Keeps each complete event, also when the server dies in the middle."""
        text = ""
        try:
            async with self.http.stream(method, path, **options) as answer:
                if is_busy(answer):
                    return
                assert answer.status_code == 200, await answer.aread()
                if location := answer.headers.get("content-location"):
                    self.runs[location.rsplit("/", 1)[1]] = thread
                async for part in answer.aiter_text():
                    text += part
        except httpx.TransportError:
            pass
        self.see(thread, text)

    async def stream(self, thread: str) -> None:
        resumable = chance.random() < 0.5
        body = {
            "assistant_id": "slow", "input": human("to slow"), "durability": next(DURABILITY),
            "stream_mode": ["values", "messages-tuple", "updates"], "stream_resumable": resumable,
        }  # fmt: skip
        await self.read("POST", f"/threads/{thread}/runs/stream", thread, json=body)
        if resumable:
            self.resumable.add(thread)

    def load(self) -> list:
        work = [self.nap(thread) for thread in self.nappers * NAPS_EACH]
        work += [self.wait(thread) for thread in self.waiters] + [self.stream(thread) for thread in self.readers]
        chance.shuffle(work)
        return work


async def in_flight(http: httpx.AsyncClient) -> int:
    lines = (await http.get("/metrics")).text.splitlines()
    return sum(
        int(line.split()[1]) for line in lines if line.startswith(("heddle_runs_running ", "heddle_runs_pending "))
    )


async def crash_under_load(server, world: World) -> None:
    """Kills the server when as many runs as possible are in flight, and a little later than that.

    A slow machine may have few in flight at any time. Therefore the kill waits until enough are
    acknowledged or all requests have ended.
    """
    tasks = [asyncio.create_task(work) for work in world.load()]
    most, enough = 0, len(world.runs) + ACKNOWLEDGED
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        while not all(task.done() for task in tasks):
            now = await in_flight(http)
            most = max(most, now)
            if len(world.runs) >= enough and (now < most * 0.9 or most >= IN_FLIGHT * 0.95):
                break
    await asyncio.sleep(chance.random() * 0.3)
    server.kill()
    await asyncio.gather(*tasks)
    print(f"{most} in flight, {len(world.runs)} acknowledged so far")
    assert len(world.runs) >= enough


async def check_runs(world: World) -> None:
    """Every acknowledged run exists and has succeeded."""
    for run, thread in world.runs.items():
        answer = await world.http.get(f"/threads/{thread}/runs/{run}")
        assert answer.status_code == 200, (run, answer.text)
        assert answer.json()["status"] == "success", answer.text


async def stored_runs(world: World, thread: str) -> list[dict]:
    return (await world.http.get(f"/threads/{thread}/runs", params={"limit": 1000})).json()[::-1]


async def check_states(world: World) -> None:
    """A thread has the output of each of its runs once, acknowledged or not."""
    for thread in world.nappers:
        runs = await stored_runs(world, thread)
        assert {run["status"] for run in runs} <= {"success"}
        values = (await world.http.get(f"/threads/{thread}/state")).json()["values"] or {}
        assert values.get("log", []) == list(STATES) * len(runs), (thread, len(runs))
    replies = {"to echo": "You said: to echo", "to slow": "one two three four five six seven eight nine ten"}
    for thread in world.waiters + world.readers:
        said: dict[str, list] = {}
        for run in await stored_runs(world, thread):
            assert run["status"] == "success"
            text = run["kwargs"]["input"]["messages"][0]["content"]
            said.setdefault(run["assistant_id"], []).extend((text, replies[text]))
        for assistant, expected in said.items():
            state = await world.http.get(f"/threads/{thread}/state", params={"assistant_id": assistant})
            assert texts(state.json()["values"]) == expected, thread


async def check_events_of(world: World, thread: str) -> None:
    """Event ids grow: a repeated event is equal, and new events have greater ids."""
    last = max(world.seen.get(thread) or [0])
    if thread in world.resumable:
        for run in await stored_runs(world, thread):
            path = f"/threads/{thread}/runs/{run['run_id']}/stream"
            await world.read("GET", path, thread, headers={"Last-Event-ID": "-1"})
    last = max(world.seen.get(thread) or [0], default=last)
    before = set(world.seen.get(thread, ()))
    body = {"assistant_id": "echo", "input": human("to echo"), "stream_mode": ["values"]}
    await world.read("POST", f"/threads/{thread}/runs/stream", thread, json=body)
    new = set(world.seen[thread]) - before
    assert new and min(new) > last, (thread, last, sorted(new))
    assert json.dumps(world.seen[thread][max(new)]).count("success") == 1


async def check_events(world: World) -> None:
    """Checks all threads concurrently: their writes share commits, which may be slow."""
    await asyncio.gather(*(check_events_of(world, thread) for thread in world.readers))


async def read_until(http: httpx.AsyncClient, method: str, path: str, name: str, **options) -> dict[int, tuple]:
    """Returns the events of a stream up to the first with that name."""
    text = ""
    async with http.stream(method, path, **options) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for part in answer.aiter_text():
            text += part
            found = events(text[: text.rfind("\n\n") + 2])
            if name in [event for event, _, _ in found]:
                return {int(number): (event, data) for event, data, number in found}
    raise AssertionError(f"no {name} in {text}")


async def test_attempts_have_numbers_of_their_own(own_server):
    async with httpx.AsyncClient(base_url=own_server.url, timeout=60) as http:
        thread = f"/threads/{(await http.post('/threads', json={})).json()['thread_id']}"
        body = {"assistant_id": "nap", "input": {"ms": 600_000}, "stream_mode": ["values"], "on_disconnect": "continue"}
        seen = await read_until(http, "POST", f"{thread}/runs/stream", "values", json=body)
        run = seen[min(seen)][1]["run_id"]
        # Wait until all checkpoints before the nap are stored: one that a later attempt stores
        # counts as progress.
        while (await http.get(f"{thread}/state")).json()["next"] != ["sleep"]:
            await asyncio.sleep(0.02)
        for attempt in (2, 3):
            own_server.kill()
            own_server.restart()
            # A client that joins while the run restarts may miss its first events, but not with -1.
            path, headers = f"{thread}/runs/{run}/stream", {"Last-Event-ID": "-1"}
            more = await read_until(http, "GET", path, "metadata", headers=headers)
            assert more[min(more)][1]["attempt"] == attempt
            assert min(more) > max(seen)
            seen |= more
        own_server.kill()
        own_server.restart()
        assert (await http.get(f"{thread}/runs/{run}")).json()["status"] == "error"
        body = {"assistant_id": "loop", "input": {"count": 0}}
        more = await read_until(http, "POST", f"{thread}/runs/stream", "end", json=body)
        assert min(more) > max(seen)


async def test_nothing_acknowledged_is_lost(own_server):
    limits = httpx.Limits(max_connections=IN_FLIGHT + 10, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=own_server.url, timeout=120, limits=limits) as http:
        world = World(http)
        await world.make_threads()
        for _ in range(ROUNDS):
            await crash_under_load(own_server, world)
            own_server.restart()
            comes_to_rest(own_server, 300)
            await check_runs(world)
            await check_states(world)
            await check_events(world)
