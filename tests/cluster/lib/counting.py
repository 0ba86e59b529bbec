"""An HTTP server with effects that count: payments of agents, and webhooks.

    with Counter() as counter:
        graph = counter.agent()             # a graph whose model calls the tool `pay`
        counter.paid                        # every payment, in the order of their receipts
        counter.hooks                       # every webhook

Each payment gets a receipt, a number that no other has. A thread's state has the receipt of the
call whose result was stored; so a call that was made again although its result was stored is seen
by a later receipt of the same step (lost_results(), repeated_steps()).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from dataclasses import dataclass

RECEIPT = re.compile(r"receipt (\d+) of (\S+) step (\S+)")
STEPS = ("1", "2a", "2b", "3")
WORDS = "paid in full and with thanks for your patience"


@dataclass
class Payment:
    receipt: int
    job: str
    step: str
    key: str | None
    headers: dict[str, str]


class Counter:
    """delay: the longest time in seconds that a payment takes."""

    def __init__(self, delay: float = 0, seed: int = 1):
        self.paid: list[Payment] = []
        self.hooks: list[dict] = []
        self.delay, self.chance = delay, random.Random(seed)
        self.loop = asyncio.new_event_loop()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Counter:
        ready = threading.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self.handle, "127.0.0.1", 0, backlog=1024)
            self.port = server.sockets[0].getsockname()[1]
            self.over = asyncio.Event()
            ready.set()
            await self.over.wait()
            server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(serve()), daemon=True)
        self.thread.start()
        assert ready.wait(30)
        return self

    def __exit__(self, *_) -> None:
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(30)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                pairs = (line.split(":", 1) for line in lines if line)
                headers = {name.lower(): value.strip() for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                answer = (await self.answer(first.split(" ")[1], headers, body)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ")
                writer.write(b"%d\r\n\r\n%s" % (len(answer), answer))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the server was killed, or closes its connection
        finally:
            writer.close()

    async def answer(self, path: str, headers: dict[str, str], body: bytes) -> str:
        if path.startswith("/hook"):
            self.hooks.append({"path": path, "headers": headers, "body": json.loads(body)})
            return ""
        asked = json.loads(body)
        made = Payment(len(self.paid), asked["job"], asked["step"], headers.get("idempotency-key"), headers)
        self.paid.append(made)
        await asyncio.sleep(self.chance.random() * self.delay)
        return f"receipt {made.receipt} of {made.job} step {made.step}"

    # ---- the agent that pays ----------------------------------------------

    def agent(self, **headers) -> dict:
        """A graph whose model calls `pay`, as script() says."""
        tool = {"name": "pay", "url": self.url + "/pay", "method": "POST", "body": True, "headers": headers}
        return {
            "name": "payer",
            "state": {"messages": {"reducer": "messages"}},
            "nodes": {
                "model": {
                    "kind": "model",
                    "defaults": {"model_name": "openai:mock"},
                    "tools": "act",
                    "idle_ms": 60000,
                    "tries": 10,
                },
                "act": {"kind": "tools", "sources": [{"http": [tool]}]},
            },
            "edges": [
                ["__start__", "model"],
                {
                    "from": "model",
                    "fanout": {
                        "over": "{{messages[-1].tool_calls}}",
                        "as": "call",
                        "to": "act",
                        "arg": {"call": "{{call}}"},
                    },
                },
                ["act", "model"],
            ],
        }

    # ---- what must be true --------------------------------------------------

    def of(self, job: str) -> list[Payment]:
        return [each for each in list(self.paid) if each.job == job]

    def jobs(self) -> dict[str, list[Payment]]:
        found: dict[str, list[Payment]] = {}
        for each in list(self.paid):
            found.setdefault(each.job, []).append(each)
        return found


def script(latency_ms: int = 0, delay_ms: int = 0) -> dict:
    """The model pays step 1, then 2a and 2b at once, then 3, and says thanks. The job is the user's
    text."""

    def pay(*steps: str) -> list[dict]:
        return [{"name": "pay", "args": {"job": "{{user}}", "step": step}, "id": f"call_{step}"} for step in steps]

    return {
        "latency_ms": latency_ms,
        "delay_ms": delay_ms,
        "rules": [
            {"when": {"tool_results": False}, "tool_calls": pay("1")},
            {"when": {"tool_results": 1}, "tool_calls": pay("2a", "2b")},
            {"when": {"tool_results": 3}, "tool_calls": pay("3")},
            {"when": {"tool_results": 4}, "content": WORDS},
        ],
    }


def receipts(messages: list[dict]) -> list[tuple[int, str, str]]:
    """(receipt, job, step) of each tool result of a state, in order."""
    texts = [message["content"] for message in messages if message["type"] == "tool"]
    found = [RECEIPT.fullmatch(text) for text in texts]
    assert all(found), texts
    return [(int(match[1]), match[2], match[3]) for match in found]


def repeated_steps(payments: list[Payment]) -> list[Payment]:
    """Payments of a job that follow a payment of a later step: the results of the earlier step were
    stored when the later one began, with durability sync."""
    order = {"1": 1, "2a": 2, "2b": 2, "3": 3}
    latest, found = 0, []
    for each in payments:
        if order[each.step] < latest:
            found.append(each)
        latest = max(latest, order[each.step])
    return found


def lost_results(payments: list[Payment], messages: list[dict]) -> list[tuple]:
    """Steps whose stored receipt is not that of their last payment: either the result was stored
    when the call was made again, or another server stored the result of an older call."""
    last = {(each.job, each.step): each.receipt for each in payments}
    return [found for found in receipts(messages) if last.get((found[1], found[2]), found[0]) != found[0]]
