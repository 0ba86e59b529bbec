"""What must be true after any series of faults, when all servers are back and at rest."""

from __future__ import annotations

import asyncio
from collections import Counter as Tally

import httpx
from agents import PATIENCE, Ledger, Run
from counting import STEPS, WORDS, Counter, lost_results, receipts, repeated_steps
from readers import Journal, agree, follow

GIVEN_UP = "three times in the same step"  # a server died three times while it executed this step
AT_ONCE = 20  # checks


class World:
    """The servers after the series: requests go to each in turn."""

    def __init__(self, servers: list[httpx.AsyncClient], ledger: Ledger, counter: Counter):
        self.servers, self.ledger, self.counter = servers, ledger, counter
        self.turn = 0
        self.given_up: set[str] = set()  # runs
        self.events = 0

    async def get(self, path: str, **params):
        self.turn += 1
        answer = await self.servers[self.turn % len(self.servers)].get(path, params=params)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def each(self, check, things) -> None:
        """Runs a check of many things, some at once."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(thing) -> None:
            async with limit:
                await check(thing)

        await asyncio.gather(*(one(thing) for thing in things))

    async def holds(self) -> None:
        await self.each(self.check_run, self.ledger.runs.values())
        # On a busy machine a step takes longer than the pause between two faults.
        count = len(self.ledger.runs)
        assert len(self.given_up) <= count / 30, f"too many of {count} runs were given up: {self.given_up}"
        await self.each(self.check_payments, {run.thread for run in self.ledger.runs.values() if run.graph == "payer"})
        await self.each(self.check_notes, self.ledger.notes)
        await self.each(self.check_answer, self.ledger.answers)
        await self.each(self.check_events, [run for run in self.ledger.runs.values() if run.is_read])
        await self.each(self.check_thread_stream, self.ledger.threads)
        self.check_hooks()

    # ---- runs and states ------------------------------------------------------

    async def check_run(self, run: Run) -> None:
        """Nothing acknowledged is lost, and every run ends."""
        found = await self.get(f"/threads/{run.thread}/runs/{run.id}")
        allowed = ("success", "interrupted") if run.is_cancelled else ("success",)
        if found["status"] == "error":
            await self.check_given_up(run.thread, run.id)
            self.given_up.add(run.id)
        else:
            assert found["status"] in allowed, (run, found)

    async def check_given_up(self, thread: str, run: str) -> None:
        """No other error ends a run."""
        record = await self.get(f"/threads/{thread}")
        joined = await self.get(f"/threads/{thread}/runs/{run}/join")
        assert GIVEN_UP in f"{record.get('error')} {joined}", (thread, run, joined)

    async def check_payments(self, thread: str) -> None:
        """The state has each job once, in the order of the runs, with the result of each payment."""
        runs = await self.get(f"/threads/{thread}/runs", limit=1000)
        jobs = [run["kwargs"]["input"]["messages"] for run in runs[::-1] if is_payer(run)]
        states = {run["run_id"]: run["status"] for run in runs}
        lost = [run for run in runs if is_payer(run) and states[run["run_id"]] == "error"]
        for run in lost:  # also those that were not acknowledged
            await self.check_given_up(thread, run["run_id"])
        messages = (await self.get(f"/threads/{thread}/state", assistant_id="payer"))["values"]["messages"]
        assert [each["content"] for each in messages if each["type"] == "human"] == jobs, (thread, jobs, messages)
        for job, part in parts_of(messages).items():
            if any(run["kwargs"]["input"]["messages"] == job for run in lost):
                continue
            kinds = [each["type"] for each in part]
            if kinds != ["human", "ai", "tool", "ai", "tool", "tool", "ai", "tool", "ai"]:
                [run] = [run for run in runs if run["kwargs"]["input"] == {"messages": job}]
                raise AssertionError(f"{job}: {kinds}\n{await self.story(run)}")
            assert part[-1]["content"] == WORDS, (job, part[-1])
            found = receipts(part)
            assert [(name, step) for _, name, step in found] == [(job, step) for step in STEPS], (job, found)
            self.check_calls(job, part)

    def check_calls(self, job: str, part: list[dict]) -> None:
        """No tool call whose result was stored is made again."""
        paid = self.counter.of(job)
        assert not repeated_steps(paid), (job, paid)
        assert not lost_results(paid, part), (job, paid, receipts(part))
        by_step: dict[str, set] = {}
        for each in paid:
            by_step.setdefault(each.step, set()).add(each.key)
        assert all(len(keys) == 1 for keys in by_step.values()), (job, paid)

    async def story(self, run: dict) -> str:
        """All about a run, for the text of a failure."""
        thread, path = run["thread_id"], f"/threads/{run['thread_id']}/runs/{run['run_id']}/stream"
        known = self.ledger.runs.get(run["run_id"])
        stored = Journal()
        try:
            await follow(self.servers[0], path, stored, PATIENCE)
        except AssertionError as error:
            print(error)
        history = await self.get(f"/threads/{thread}/history", assistant_id="payer", limit=1000)
        states = [
            {name: state["metadata"].get(name) for name in ("run_id", "run_attempt", "source", "step")}
            | {"at": state["created_at"], "next": state["next"], "id": state["checkpoint"]["checkpoint_id"],
               "parent": (state["parent_checkpoint"] or {}).get("checkpoint_id"),
               "messages": len(state["values"].get("messages", []))}
            for state in history
        ]  # fmt: skip
        return "\n".join(
            [f"run {run}", f"acknowledged: {known}", "stored events:", *map(repr, stored.frames), "checkpoints:"]
            + [repr(state) for state in states]
        )

    async def check_notes(self, thread: str) -> None:
        log = (await self.get(f"/threads/{thread}/state", assistant_id="nap"))["values"]["log"]
        twice = {text: count for text, count in Tally(log).items() if count > 1}
        assert not twice, (thread, twice)
        assert [text for text in log if text in self.ledger.notes[thread]] == self.ledger.notes[thread], (thread, log)

    async def check_answer(self, thread: str) -> None:
        values = (await self.get(f"/threads/{thread}/state", assistant_id="approval"))["values"]
        answers = [each["content"] for each in values["messages"] if each["type"] == "ai"]
        assert f"Approved: {self.ledger.answers[thread]}" in answers, (thread, answers)

    # ---- streams ----------------------------------------------------------------

    async def check_events(self, run: Run) -> None:
        """A reader saw each event once, in order, and every server has the same ones."""
        assert run.journal.names().count("end") == 1 and run.journal.has_ended(), run
        attempts = run.journal.attempts()
        assert attempts == sorted(set(attempts)), (run, attempts)
        self.turn += 1
        stored, path = Journal(is_compact=True), f"/threads/{run.thread}/runs/{run.id}/stream"
        await follow(self.servers[self.turn % len(self.servers)], path, stored, PATIENCE)
        agree(run.journal, stored)
        self.events += len(stored.frames)

    async def check_thread_stream(self, thread: str) -> None:
        """The reader of a thread saw every stored event of its runs."""
        seen = {number: (name, data) for name, data, number in self.ledger.threads[thread].frames}
        for run in self.ledger.runs.values():
            if run.thread == thread and run.is_read:
                stored = Journal(is_compact=True)
                await follow(self.servers[0], f"/threads/{thread}/runs/{run.id}/stream", stored, PATIENCE)
                missing = [frame for frame in stored.frames if seen.get(frame[2]) != (frame[0], frame[1])]
                assert not missing, (thread, run.id, missing[:3], len(missing))

    def check_hooks(self) -> None:
        """Each webhook has arrived. One may arrive twice: when a server dies before it has stored
        that it was delivered."""
        wanted = {run.id for run in self.ledger.runs.values() if run.webhook}
        arrived = Tally(hook["body"]["run_id"] for hook in self.counter.hooks)
        assert not wanted - arrived.keys(), wanted - arrived.keys()


def is_payer(run: dict) -> bool:
    return run["kwargs"].get("config", {}).get("configurable", {}).get("graph_id", run.get("graph_id")) == "payer"


def parts_of(messages: list[dict]) -> dict[str, list[dict]]:
    """The messages of each job: from a human's to the next one."""
    found: dict[str, list[dict]] = {}
    for each in messages:
        if each["type"] == "human":
            assert each["content"] not in found, f"{each['content']} is there twice"
            part = found[each["content"]] = []
        part.append(each)
    return found
