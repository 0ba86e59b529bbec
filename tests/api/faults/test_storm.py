"""Everything at once on a few threads: runs, cancels, rollbacks, deletions, disconnected streams.

HEDDLE_STORM_SECONDS makes it longer; HEDDLE_STORM_SEED, a word, selects another sequence.
"""

import asyncio
import os
import random
import time
import uuid

import httpx
import pytest
from load import comes_to_rest, is_usable
from plain import human

pytestmark = pytest.mark.beyond_peer("is not meant to survive this")

SECONDS = float(os.environ.get("HEDDLE_STORM_SECONDS", 8))
CLIENTS, THREADS = 24, 5
LEAST = 12  # actions of each client, at least, also on a slow machine
STRATEGIES = ("enqueue", "enqueue", "reject", "interrupt", "rollback")


class Storm:
    """The random actions of one client."""

    def __init__(self, http: httpx.AsyncClient, threads: list[str], runs: list, seed: str):
        self.http, self.threads, self.runs = http, threads, runs
        self.random = random.Random(seed)
        self.seen: dict[int, int] = {}

    async def ask(self, method: str, path: str, **options) -> httpx.Response:
        answer = await self.http.request(method, path, **options)
        self.seen[answer.status_code] = self.seen.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, f"{method} {path} {options}: {answer.status_code} {answer.text}"
        return answer

    def body(self) -> dict:
        graph = self.random.choice(("echo", "nap", "slow", "loop", "fanout", "nested", "approval", "failing"))
        given = {"nap": {"ms": self.random.randrange(40)}, "loop": {"count": 0}}.get(graph, human("hi"))
        return {
            "assistant_id": graph,
            "input": given,
            "multitask_strategy": self.random.choice(STRATEGIES),
            "durability": self.random.choice(("sync", "async", "exit")),
            "if_not_exists": self.random.choice(("create", "create", "reject")),
            "on_disconnect": self.random.choice(("cancel", "continue")),
            "stream_resumable": self.random.random() < 0.5,
            "stream_subgraphs": self.random.random() < 0.3,
            "stream_mode": self.random.sample(["values", "messages", "messages-tuple", "updates", "debug"], 2),
            **({"after_seconds": self.random.choice((0, 1))} if self.random.random() < 0.1 else {}),
        }

    def thread(self) -> str:
        return self.random.choice(self.threads)

    def run(self) -> tuple[str, str]:
        return self.random.choice(self.runs[-40:]) if self.runs else (self.thread(), str(uuid.uuid4()))

    async def create(self) -> None:
        thread = self.thread()
        answer = await self.ask("POST", f"/threads/{thread}/runs", json=self.body())
        if answer.status_code == 200:
            self.runs.append((thread, answer.json()["run_id"]))

    async def wait(self) -> None:
        await self.ask("POST", f"/threads/{self.thread()}/runs/wait", json=self.body())

    async def read_some(self, method: str, path: str, **options) -> None:
        """Reads a stream for a moment, perhaps to its end, and disconnects."""
        chunks = self.random.choice((0, 1, 3, 1000))
        try:
            async with asyncio.timeout(2), self.http.stream(method, path, **options) as answer:
                assert answer.status_code < 500, answer.status_code
                async for _ in answer.aiter_raw():
                    chunks -= 1
                    if chunks < 0:
                        break
        except (TimeoutError, httpx.RemoteProtocolError, httpx.ReadError):
            pass  # a thread's stream has no end; the stream of a deleted thread is cut off

    async def stream(self) -> None:
        await self.read_some("POST", f"/threads/{self.thread()}/runs/stream", json=self.body())

    async def stream_alone(self) -> None:
        body = {key: value for key, value in self.body().items() if key != "if_not_exists"}
        await self.read_some("POST", "/runs/stream", json=body)

    async def join(self) -> None:
        thread, run = self.run()
        headers = self.random.choice(({}, {"Last-Event-ID": "-1"}))
        params = {"cancel_on_disconnect": self.random.choice(("true", "false"))}
        await self.read_some("GET", f"/threads/{thread}/runs/{run}/stream", headers=headers, params=params)

    async def watch(self) -> None:
        await self.read_some("GET", f"/threads/{self.thread()}/stream", headers={"Last-Event-ID": "-1"})

    async def cancel(self) -> None:
        thread, run = self.run()
        params = {
            "action": self.random.choice(("interrupt", "rollback")),
            "wait": self.random.choice(("true", "false")),
        }
        await self.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params=params)

    async def cancel_many(self) -> None:
        body = {"status": self.random.choice(("pending", "running", "all"))}
        action = self.random.choice(("interrupt", "rollback"))
        await self.ask("POST", "/runs/cancel", json=body, params={"action": action})

    async def delete_run(self) -> None:
        thread, run = self.run()
        await self.ask("DELETE", f"/threads/{thread}/runs/{run}")

    async def delete_thread(self) -> None:
        await self.ask("DELETE", f"/threads/{self.thread()}")

    async def change(self) -> None:
        body = {"values": human("changed"), "assistant_id": "echo"}
        await self.ask("POST", f"/threads/{self.thread()}/state", json=body)

    async def look(self) -> None:
        path = self.random.choice(("", "/state", "/history", "/runs", "/branches", "/timeline"))
        await self.ask("GET", f"/threads/{self.thread()}{path}")

    async def copy(self) -> None:
        await self.ask("POST", f"/threads/{self.thread()}/copy")

    async def go_on(self, until: float) -> None:
        often = (self.create, self.cancel, self.stream)
        rare = (self.delete_thread, self.cancel_many, self.copy)
        others = (self.wait, self.stream_alone, self.join, self.watch, self.delete_run, self.change, self.look)
        done = 0
        while time.monotonic() < until or done < LEAST:
            await self.random.choice(often * 3 + others + rare)()
            done += 1


async def test_many_clients_at_once(own_server):
    seed = os.environ.get("HEDDLE_STORM_SEED") or "1"
    print(f"HEDDLE_STORM_SEED={seed}")
    threads = [str(uuid.uuid4()) for _ in range(THREADS)]
    limits = httpx.Limits(max_connections=2 * CLIENTS)
    async with httpx.AsyncClient(base_url=own_server.url, timeout=120, limits=limits) as http:
        runs: list = []
        clients = [Storm(http, threads, runs, f"{seed}{number}") for number in range(CLIENTS)]
        until = time.monotonic() + SECONDS
        await asyncio.gather(*(client.go_on(until) for client in clients))
    print({code: sum(client.seen.get(code, 0) for client in clients) for code in (200, 202, 204, 404, 409, 422)})
    assert sum(client.seen.get(200, 0) for client in clients) > CLIENTS
    assert not any(422 in client.seen for client in clients)  # a 422 would be a mistake of this test
    comes_to_rest(own_server)
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        for thread in threads:
            is_usable(http, thread)
    comes_to_rest(own_server)
