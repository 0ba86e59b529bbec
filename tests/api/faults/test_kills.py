"""A series of kill -9 under load, on SQLite and, if it is available, on PostgreSQL.

The default is a short series. HEDDLE_API_KILLS is the number of kills for each database,
HEDDLE_API_SEED selects another order of events: see tests/api/run.
"""

import asyncio
import contextlib
import os
import random
import time
import uuid

import httpx
import pytest
from load import comes_to_rest, metrics
from plain import events, human, texts
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

KILLS = int(os.environ.get("HEDDLE_API_KILLS", "4"))
CLIENTS = 12
PATIENCE = 120  # seconds, for every condition
EVENTS_MODES = ["values", "updates", "messages-tuple"]


def stores() -> dict[str, str | None]:
    """The databases by name; None is the server's default SQLite file."""
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    found = {"sqlite": None}
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=kills_{uuid.uuid4().hex[:8]}"
    return found


class Ledger:
    """Everything that the server acknowledged."""

    def __init__(self):
        self.runs: dict[str, str] = {}  # run to thread
        self.said: dict[str, list[str]] = {}  # thread to the texts whose responses were read
        self.items: dict[str, int] = {}  # key to the last acknowledged value
        self.resumable: set[str] = set()
        self.seen: dict[str, dict[int, tuple]] = {}  # run to its events by number

    def count(self) -> int:
        return len(self.runs) + sum(map(len, self.said.values())) + len(self.items)

    def see(self, run: str, found: list[tuple]) -> None:
        """An event id always has the same content, and no event follows `end`."""
        known = self.seen.setdefault(run, {})
        for name, data, number in found:
            assert known.setdefault(int(number), (name, data)) == (name, data), (run, number)
        ends = [number for number, (name, _) in known.items() if name == "end"]
        assert len(ends) <= 1 and (not ends or ends[0] == max(known)), (run, sorted(known.items())[-5:])


class Client:
    """Works on its own thread, one request after the other, and does not repeat a failed request."""

    def __init__(self, number: int, http: httpx.AsyncClient, ledger: Ledger, seed: int):
        self.http, self.ledger, self.number = http, ledger, number
        self.chance = random.Random(seed * 1000 + number)
        self.thread = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        self.turn = 0

    def body(self, graph: str, text: str, **more) -> dict:
        durability = self.chance.choice(("sync", "async", "exit"))
        return {
            "assistant_id": graph, "input": human(text), "durability": durability, "if_not_exists": "create",
            "multitask_strategy": "enqueue", **more,
        }  # fmt: skip

    def acknowledge(self, answer: httpx.Response, resumable: bool) -> str:
        run = answer.headers["content-location"].rsplit("/", 1)[1]
        self.ledger.runs[run] = self.thread
        if resumable:
            self.ledger.resumable.add(run)
        return run

    async def start(self, text: str) -> None:
        resumable = self.chance.random() < 0.5
        body = self.body("echo", text, stream_mode=EVENTS_MODES, stream_resumable=resumable)
        answer = await self.http.post(f"/threads/{self.thread}/runs", json=body)
        assert answer.status_code == 200, answer.text
        self.acknowledge(answer, resumable)

    async def wait(self, text: str) -> None:
        answer = await self.http.post(f"/threads/{self.thread}/runs/wait", json=self.body("echo", text))
        assert answer.status_code == 200, answer.text
        self.acknowledge(answer, False)
        with contextlib.suppress(ValueError):  # the response was truncated
            values = answer.json()
            assert text in texts(values), values
            self.ledger.said.setdefault(self.thread, []).append(text)

    async def read(self, method: str, path: str, run: str | None = None, **options) -> None:
        """Keeps the complete events of a stream, also when it is cut off."""
        text = ""
        try:
            async with self.http.stream(method, path, **options) as answer:
                assert answer.status_code == 200, await answer.aread()
                run = run or self.acknowledge(answer, True)
                async for part in answer.aiter_text():
                    text += part
        finally:
            if run:
                self.ledger.see(run, events(text[: text.rfind("\n\n") + 2]))

    async def stream(self, text: str) -> None:
        body = self.body("echo", text, stream_mode=EVENTS_MODES, stream_resumable=True, on_disconnect="continue")
        await self.read("POST", f"/threads/{self.thread}/runs/stream", json=body)

    async def join(self, _: str) -> None:
        """Reads a stored stream while the server may be killed; such a reader once saw `end` too
        early."""
        own = [run for run in self.ledger.resumable if self.ledger.runs[run] == self.thread]
        if own:
            await self.replay(self.chance.choice(own[-3:]))

    async def replay(self, run: str) -> None:
        await self.read("GET", f"/threads/{self.thread}/runs/{run}/stream", run, headers={"Last-Event-ID": "-1"})

    async def put(self, _: str) -> None:
        item = {"namespace": ["kills"], "key": str(self.number), "value": {"turn": self.turn}}
        answer = await self.http.put("/store/items", json=item)
        assert answer.status_code in (200, 204), answer.text
        self.ledger.items[str(self.number)] = self.turn

    async def work(self, going: asyncio.Event, over: asyncio.Event) -> None:
        kinds = (self.start, self.wait, self.stream, self.stream, self.join, self.join, self.put)
        while not over.is_set():
            await going.wait()
            self.turn += 1
            try:
                await self.chance.choice(kinds)(f"{self.number}.{self.turn}")
            except httpx.TransportError:
                await asyncio.sleep(0.02)  # not acknowledged; the server is down


async def rest(server) -> None:
    await asyncio.to_thread(comes_to_rest, server, PATIENCE)


async def kill_under_load(server, going: asyncio.Event, chance: random.Random) -> None:
    """After every second kill all runs must complete, so at most two kills hit the same run."""
    for number in range(KILLS):
        await asyncio.sleep(chance.random() * 0.6)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.restart)
        if number % 2:
            going.clear()
            await rest(server)
            going.set()


async def check_runs(http: httpx.AsyncClient, ledger: Ledger) -> None:
    for run, thread in ledger.runs.items():
        answer = await http.get(f"/threads/{thread}/runs/{run}")
        assert answer.status_code == 200 and answer.json()["status"] == "success", (run, answer.text)


async def check_states(http: httpx.AsyncClient, ledger: Ledger, clients: list[Client]) -> None:
    """The state has each text of a run once, in the order of the runs, followed by its reply."""
    for client in clients:
        runs = (await http.get(f"/threads/{client.thread}/runs", params={"limit": 1000})).json()[::-1]
        inputs = [run["kwargs"]["input"]["messages"][0]["content"] for run in runs]
        state = (await http.get(f"/threads/{client.thread}/state")).json()["values"]
        assert texts(state) == [text for each in inputs for text in (each, f"You said: {each}")], client.thread
        assert set(ledger.said.get(client.thread, ())) <= set(inputs)


async def check_events(ledger: Ledger, clients: list[Client]) -> int:
    """The stored events of every finished resumable run can be read from -1 and end with `end`."""
    threads, count = {client.thread: client for client in clients}, 0
    for run in sorted(ledger.resumable):
        stored = ledger.seen.get(run, {})
        ended = next((number for number, (name, _) in stored.items() if name == "end"), None)
        ledger.seen[run] = {}
        await threads[ledger.runs[run]].replay(run)
        found = ledger.seen[run]
        assert found and found[max(found)][0] == "end", (run, found)
        assert found[min(found)][0] == "metadata", (run, found)
        assert ended is None or max(found) == ended, (run, ended, max(found))
        count += len(found)
    return count


async def check_items(http: httpx.AsyncClient, ledger: Ledger) -> None:
    for key, turn in ledger.items.items():
        value = (await http.get("/store/items", params={"namespace": "kills", "key": key})).json()["value"]
        assert value["turn"] >= turn, (key, turn, value)


async def run_series(server: Server, seed: int) -> None:
    going, over, ledger = asyncio.Event(), asyncio.Event(), Ledger()
    limits = httpx.Limits(max_keepalive_connections=0)
    begun = time.monotonic()
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE, limits=limits) as http:
        clients = [Client(number, http, ledger, seed) for number in range(CLIENTS)]
        tasks = [asyncio.create_task(client.work(going, over)) for client in clients]
        going.set()
        killing = asyncio.create_task(kill_under_load(server, going, random.Random(seed)))
        done, _ = await asyncio.wait([killing, *tasks], return_when=asyncio.FIRST_COMPLETED)
        over.set()
        going.set()
        await asyncio.gather(*done)
        await asyncio.gather(*tasks)
        await rest(server)
        await check_runs(http, ledger)
        await check_states(http, ledger, clients)
        await check_items(http, ledger)
        stored = await check_events(ledger, clients)
    failed = metrics(server).get("heddle_runs_failed_total", 0)
    print(
        f"{KILLS} kills in {time.monotonic() - begun:.0f} s: {ledger.count()} acknowledged, {len(ledger.runs)} runs, "
        f"{len(ledger.resumable)} resumable with {stored} stored events; {failed:.0f} runs failed"
    )
    assert ledger.runs


@pytest.mark.timeout(600 + 30 * KILLS)
@pytest.mark.parametrize("name", sorted(stores()))
async def test_kills_lose_nothing_acknowledged_and_no_end_is_taken_back(name):
    server = Server(store=stores()[name])
    try:
        server.start()
        await run_series(server, int(os.environ.get("HEDDLE_API_SEED", "1")))
        server.stop()
    finally:
        server.remove()
