"""200 agents that work through a proxy while servers fail, and what they were told.

An agent works on its own thread, one turn after the other, and does not repeat a request whose
answer was lost: nothing was acknowledged then. What was acknowledged is in its ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import uuid
from dataclasses import dataclass, field

import httpx
from readers import MODES, Journal, follow

AWAY = (502, 503, 504)  # nothing was acknowledged
PATIENCE = 180  # seconds, for the end of a run
TURNS_EACH = 8  # in a thread; then the agent begins another one


@dataclass
class Run:
    id: str
    thread: str
    graph: str
    text: str
    is_cancelled: bool = False
    webhook: str | None = None
    journal: Journal = field(default_factory=lambda: Journal(is_compact=True))
    is_read: bool = False


@dataclass
class Ledger:
    """Everything that was acknowledged."""

    runs: dict[str, Run] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)  # thread to the texts of state updates
    answers: dict[str, str] = field(default_factory=dict)  # thread to the last answer of an approval
    threads: dict[str, Journal] = field(default_factory=dict)  # thread to what a reader of it saw
    lost: int = 0  # requests without an answer


class Agent:
    """watches: it also reads the streams of its threads."""

    def __init__(self, number: int, http: httpx.AsyncClient, ledger: Ledger, seed: int, hook: str, idle: float):
        self.number, self.http, self.ledger, self.hook, self.idle = number, http, ledger, hook, idle
        self.chance = random.Random(f"{seed} {number}")
        self.thread = ""
        self.turn = 0
        self.watches = number % 5 == 0
        self.watching: list[asyncio.Task] = []

    async def ask(self, method: str, path: str, **options) -> httpx.Response | None:
        """None: the answer was lost, or the server says that it has done nothing."""
        try:
            answer = await self.http.request(method, path, **options)
        except httpx.TransportError:
            self.ledger.lost += 1
            return None
        if answer.status_code in AWAY:
            self.ledger.lost += 1
            return None
        assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def body(self, graph: str, **more) -> dict:
        return {
            "assistant_id": graph, "if_not_exists": "create", "stream_resumable": True, "stream_mode": MODES,
            "on_disconnect": "continue", "multitask_strategy": "enqueue", "durability": "sync", **more,
        }  # fmt: skip

    def note_run(self, answer: httpx.Response, graph: str, text: str, **more) -> Run:
        run = Run(answer.headers["content-location"].rsplit("/", 1)[1], self.thread, graph, text, **more)
        return self.ledger.runs.setdefault(run.id, run)

    def path(self, rest: str) -> str:
        return f"/threads/{self.thread}{rest}"

    # ---- turns --------------------------------------------------------------

    async def pays(self, text: str) -> None:
        """A run in the background; its reader comes later, and comes back."""
        hook = f"{self.hook}/{text}" if self.chance.random() < 0.2 else None
        body = self.body("payer", input={"messages": text}, **({"webhook": hook} if hook else {}))
        if answer := await self.ask("POST", self.path("/runs"), json=body):
            run = self.note_run(answer, "payer", text, webhook=hook)
            await asyncio.sleep(self.chance.random() * 3)
            await self.reads(run)

    async def pays_and_watches(self, text: str) -> None:
        """The stream of the request itself, and after a break another one."""
        body, run = self.body("payer", input={"messages": text}), None
        try:
            async with self.http.stream("POST", self.path("/runs/stream"), json=body) as answer:
                if answer.status_code in AWAY:
                    self.ledger.lost += 1
                    return
                assert answer.status_code == 200, (await answer.aread()).decode()
                run = self.note_run(answer, "payer", text)
                async for piece in answer.aiter_text():
                    run.journal.feed(piece)
        except httpx.TransportError:
            self.ledger.lost += 1
        if run:
            run.journal.breaks()
            await self.reads(run)

    async def reads(self, run: Run) -> None:
        await follow(self.http, self.path(f"/runs/{run.id}/stream"), run.journal, PATIENCE)
        run.is_read = True

    async def pays_and_waits(self, text: str) -> None:
        body, run = self.body("payer", input={"messages": text}), None
        with contextlib.suppress(httpx.TransportError):
            async with self.http.stream("POST", self.path("/runs/wait"), json=body) as answer:
                if answer.status_code in AWAY:
                    return
                assert answer.status_code == 200, (await answer.aread()).decode()
                run = self.note_run(answer, "payer", text)
                await answer.aread()
        if run:
            await self.ends(run)

    async def ends(self, run: Run) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            answer = await self.ask("GET", self.path(f"/runs/{run.id}"))
            if answer and answer.json()["status"] not in ("pending", "running"):
                return
            assert asyncio.get_running_loop().time() < deadline, f"{run} does not end: {answer and answer.text}"
            await asyncio.sleep(0.5)

    async def asks(self, text: str) -> None:
        """A question and its answer."""
        body = self.body("approval", input={"messages": text})
        if not (answer := await self.ask("POST", self.path("/runs"), json=body)):
            return
        await self.ends(self.note_run(answer, "approval", text))
        body = self.body("approval", command={"resume": text})
        if answer := await self.ask("POST", self.path("/runs"), json=body):
            await self.ends(self.note_run(answer, "approval", text))
            self.ledger.answers[self.thread] = text
        else:
            self.ledger.answers.pop(self.thread, None)

    async def changes_its_mind(self, text: str) -> None:
        """A long run that is cancelled, while another agent of the thread goes on."""
        body = self.body("staged", input={"log": []})
        if not (answer := await self.ask("POST", self.path("/runs"), json=body)):
            return
        run = self.note_run(answer, "staged", text, is_cancelled=True)
        await asyncio.sleep(self.chance.random() * 3)
        while not await self.ask("POST", self.path(f"/runs/{run.id}/cancel"), params={"wait": "1"}):
            await asyncio.sleep(0.5)
        await self.ends(run)

    async def notes(self, text: str) -> None:
        """A state update, which no run makes."""
        body = {"assistant_id": "nap", "values": {"log": [text]}}
        if await self.ask("POST", self.path("/state"), json=body):
            self.ledger.notes.setdefault(self.thread, []).append(text)

    TURNS = (
        (pays, 6),
        (pays_and_watches, 6),
        (pays_and_waits, 2),
        (asks, 2),
        (changes_its_mind, 1),
        (notes, 2),
    )

    # ---- work ---------------------------------------------------------------

    def has_seen_all(self, thread: str) -> bool:
        """The agent has left the thread, and its reader has seen the end of each run."""
        if self.thread == thread:
            return False
        ends = {data["run_id"] for name, data, _ in self.ledger.threads[thread].frames if name == "end"}
        return all(run.id in ends for run in self.ledger.runs.values() if run.thread == thread and run.is_read)

    def missing(self, thread: str) -> str:
        """The runs whose end a reader of the thread has not seen, for the text of a failure."""
        frames = self.ledger.threads[thread].frames
        seen = {number for _, _, number in frames}
        marks = [(number, name, data["run_id"]) for name, data, number in frames if name in ("metadata", "end")]
        runs = [run for run in self.ledger.runs.values() if run.thread == thread and run.is_read]
        ended = {run for _, name, run in marks if name == "end"}
        missed = {
            run.id: [(number, name) for name, _, number in run.journal.frames if number not in seen]
            for run in runs
            if run.id not in ended
        }
        return f"events of runs: {missed}; it saw {marks}, and last {frames[-1:]}"

    async def watch(self, thread: str) -> None:
        """Reads the stream of a thread, and comes back as often as it must."""
        journal = self.ledger.threads[thread] = Journal("-", is_compact=True)
        left = math.inf

        def is_over() -> bool:
            """Checks the reader's patience, too, which begins when the agent leaves the thread."""
            nonlocal left
            now = asyncio.get_running_loop().time()
            left = min(left, now) if self.thread != thread else math.inf
            assert now < left + PATIENCE, (
                f"the reader of the thread {thread} misses the end of a run: {journal.names()}"
            )
            return self.has_seen_all(thread)

        while not is_over():
            with contextlib.suppress(httpx.TransportError):
                headers = {"Last-Event-ID": journal.last}
                async with self.http.stream("GET", f"/threads/{thread}/stream", headers=headers) as answer:
                    if answer.status_code not in AWAY:
                        assert answer.status_code == 200, (await answer.aread()).decode()
                        async for piece in answer.aiter_text():
                            journal.feed(piece, ends=False)
                            if is_over():
                                break
            journal.breaks()
            await asyncio.sleep(0.2)

    async def begin_thread(self) -> None:
        thread = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        while not await self.ask("POST", "/threads", json={"thread_id": thread, "if_exists": "do_nothing"}):
            await asyncio.sleep(0.5)
        self.thread = thread
        if self.watches:
            self.watching.append(asyncio.create_task(self.watch(thread)))

    async def work(self, over: asyncio.Event) -> None:
        turns, weights = zip(*self.TURNS)
        try:
            await asyncio.sleep(self.chance.random() * self.idle)
            while not over.is_set():
                if self.turn % TURNS_EACH == 0:
                    await self.begin_thread()
                self.turn += 1
                [turn] = self.chance.choices(turns, weights)
                await turn(self, f"{self.number}-{self.turn}")
                await asyncio.sleep(self.chance.random() * 2 * self.idle)
            self.thread = ""
            await asyncio.gather(*self.watching)
        finally:
            for task in self.watching:
                task.cancel()
