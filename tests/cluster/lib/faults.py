"""Faults at random, from a fixed seed: of servers, the database and the network."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter as Tally

from cluster import Cluster, Member

AT_ONCE = 2  # faults
LOST = "this server stops"  # what a server says that ends because it has lost its place


class Faults:
    def __init__(self, cluster: Cluster, seed: int, outage: float):
        self.cluster, self.outage = cluster, outage
        self.chance = random.Random(seed)
        self.busy: set[object] = set()  # servers, and "database"
        self.count: Tally[str] = Tally()
        self.lost: Tally[str] = Tally()  # servers that lost their place
        self.tasks: set[asyncio.Task] = set()
        self.begun = time.monotonic()

    def say(self, what: str, *members: Member) -> None:
        names = " ".join(each.name for each in members)
        print(f"{time.monotonic() - self.begun:7.1f} s  {what} {names}", flush=True)

    # ---- each fault: it begins, lasts, and is over ---------------------------

    async def kill(self, member: Member) -> None:
        await asyncio.to_thread(member.kill)
        await self.lasts(0, 2)
        await asyncio.to_thread(member.revive)

    async def kill_all(self, *members: Member) -> None:
        for each in members:
            each.kill()
        await self.lasts(0, 1)
        await asyncio.gather(*(asyncio.to_thread(each.revive) for each in members))

    async def terminate(self, member: Member) -> None:
        try:
            await asyncio.to_thread(member.stop)
        except AssertionError:
            # After an earlier fault it may learn only now that it has lost its place.
            if LOST not in member.tail(3):
                raise
            self.lost[member.name] += 1
        await self.lasts(0, 2)
        await asyncio.to_thread(member.revive)

    async def pause(self, member: Member) -> None:
        member.pause()
        await self.lasts(1.2, 2.5)
        member.go_on()

    async def pause_shortly(self, member: Member) -> None:
        member.pause()
        await self.lasts(0.1, 0.6)
        member.go_on()

    async def cut_store(self, member: Member) -> None:
        self.cluster.cut_store(member, breaks=self.chance.random() < 0.5)
        await self.lasts(0.3, 2.5)
        self.cluster.mend(member)

    async def cut_peers(self, one: Member, other: Member) -> None:
        self.cluster.cut_peers(one, other, breaks=self.chance.random() < 0.3)
        await self.lasts(0.5, 2)
        self.cluster.mend(one, other)

    async def isolate(self, member: Member) -> None:
        self.cluster.isolate(member, breaks=self.chance.random() < 0.3)
        await self.lasts(0.5, 2)
        self.cluster.mend(member)

    async def restart_database(self) -> None:
        await asyncio.to_thread(self.cluster.stop_database)
        await asyncio.to_thread(self.cluster.start_database)

    async def stop_database(self) -> None:
        await asyncio.to_thread(self.cluster.stop_database)
        await asyncio.sleep(self.outage)
        await asyncio.to_thread(self.cluster.start_database)

    KINDS = (
        # (fault, servers, needs the database, weight)
        (kill, 1, False, 6),
        (terminate, 1, False, 4),
        (pause, 1, False, 4),
        (pause_shortly, 1, False, 1),
        (cut_store, 1, False, 3),
        (cut_peers, 2, False, 2),
        (isolate, 1, False, 1),
        (restart_database, 0, True, 2),
        (stop_database, 0, True, 1),
        (kill_all, 3, False, 1),
    )

    async def lasts(self, least: float, most: float) -> None:
        """Waits for so many leases."""
        await asyncio.sleep(self.chance.uniform(least, most) * self.cluster.lease)

    # ---- series ----------------------------------------------------------------

    def choose(self):
        """A fault whose victims have no other one now. None: all servers start, or wait for the database;
        another outage would only keep them from it."""
        free = [each for each in self.cluster.members if each not in self.busy and each.is_up()]
        possible = [kind for kind in self.KINDS if kind[1] <= len(free) and not (kind[2] and "database" in self.busy)]
        if not free or not possible:
            return None
        [(fault, count, is_database, _)] = self.chance.choices(possible, [kind[3] for kind in possible])
        return fault, self.chance.sample(free, count), is_database

    async def inject(self, fault, victims: list[Member], is_database: bool) -> None:
        taken = {*victims, *(["database"] if is_database else [])}
        self.busy |= taken
        try:
            self.count[fault.__name__] += 1
            self.say(fault.__name__, *victims)
            await fault(self, *victims)
        finally:
            self.busy -= taken

    async def watch(self, over: asyncio.Event) -> None:
        """Starts servers again that have lost their place; no other end is allowed."""
        while not over.is_set():
            for each in self.cluster.members:
                if each not in self.busy and each.process and not each.is_paused and not each.is_up():
                    each.may_end = LOST in each.tail(3)
                    assert each.has_ended()
                    self.lost[each.name] += 1
                    self.say("has lost its place:", each)
                    await self.inject_revival(each)
            await asyncio.sleep(0.1)

    async def inject_revival(self, member: Member) -> None:
        self.busy.add(member)
        try:
            await asyncio.to_thread(member.revive)
        finally:
            self.busy.discard(member)

    async def series(self, count: int) -> None:
        for _ in range(count):
            while len(self.tasks) >= AT_ONCE or not (chosen := self.choose()):
                await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED, timeout=0.2)
                self.reap()
            self.tasks.add(asyncio.create_task(self.inject(*chosen)))
            await asyncio.sleep(self.chance.uniform(0.2, 4))
            self.reap()
        while self.tasks:
            await asyncio.wait(self.tasks)
            self.reap()

    def reap(self) -> None:
        for task in [task for task in self.tasks if task.done()]:
            self.tasks.discard(task)
            task.result()  # raises what the fault did
