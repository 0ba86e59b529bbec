"""Agents pay through three servers while everything around them fails.

HEDDLE_CLUSTER_FAULTS    faults (12)
HEDDLE_CLUSTER_SEED      another order of events (1)
HEDDLE_CLUSTER_BOUNCER   1: PgBouncer in transaction mode between the servers and PostgreSQL
HEDDLE_CLUSTER_AGENTS    agents (200)
HEDDLE_CLUSTER_OUTAGE    seconds of an outage of the database (4)
HEDDLE_CLUSTER_IDLE      mean seconds between two turns of an agent (6)
"""

import asyncio
import contextlib
import os
import resource
import subprocess
import time

import httpx
import pytest
from agents import Agent, Ledger
from cluster import Cluster
from counting import Counter, script
from faults import Faults
from invariants import World
from programs import wait_for
from server import binary

FAULTS = int(os.environ.get("HEDDLE_CLUSTER_FAULTS", "12"))
SEED = int(os.environ.get("HEDDLE_CLUSTER_SEED", "1"))
BOUNCER = os.environ.get("HEDDLE_CLUSTER_BOUNCER") == "1"
AGENTS = int(os.environ.get("HEDDLE_CLUSTER_AGENTS", "200"))
OUTAGE = float(os.environ.get("HEDDLE_CLUSTER_OUTAGE", "4"))
IDLE = float(os.environ.get("HEDDLE_CLUSTER_IDLE", "6"))
LEASE = 3
CLOCKS = (-30, 0, 30)
# A request that a paused server has accepted is given up; streams have a heartbeat each second.
PATIENCE = httpx.Timeout(10, read=6, pool=None)


@pytest.fixture
def counter():
    with Counter(delay=0.3, seed=SEED) as made:
        yield made


@pytest.fixture
def chaos(cluster, counter, mock):
    model = mock(script(latency_ms=400, delay_ms=40))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    return cluster(
        {"payer": counter.agent()},
        lease=LEASE,
        clocks=CLOCKS,
        bouncer=BOUNCER,
        env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-of-the-environment"},
        options=["--stream-heartbeat", "1", "--outage-timeout", "600", "--drain", "2"],
    )


async def first_failure(tasks: list[asyncio.Task], main: asyncio.Task) -> None:
    """Waits for the main task; a failure of any task ends the test."""
    while not main.done():
        done, _ = await asyncio.wait([main, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        tasks = [task for task in tasks if not task.done()]


async def play(servers: Cluster, counter: Counter, ledger: Ledger, faults: Faults) -> None:
    """The agents work until the last fault is over and repaired, and finish their turns."""
    over, repaired = asyncio.Event(), asyncio.Event()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    async with httpx.AsyncClient(base_url=servers.url, timeout=PATIENCE, limits=limits) as http:
        agents = [Agent(number, http, ledger, SEED, counter.url + "/hook", IDLE) for number in range(AGENTS)]
        tasks = [asyncio.create_task(agent.work(over)) for agent in agents]
        guard = asyncio.create_task(faults.watch(repaired))
        try:
            await first_failure([*tasks, guard], asyncio.create_task(faults.series(FAULTS)))
            over.set()
            await first_failure([guard], asyncio.gather(*tasks))
            await asyncio.to_thread(servers.comes_to_rest, 180)
            repaired.set()
            await guard
        finally:
            for task in (*tasks, guard):
                task.cancel()


async def judge(servers: Cluster, counter: Counter, ledger: Ledger) -> World:
    wait_for(lambda: servers.sql("SELECT count(*) FROM outbox") == "0", 120, "the delivery of all webhooks")
    async with contextlib.AsyncExitStack() as stack:
        clients = [httpx.AsyncClient(base_url=each.url, timeout=60) for each in servers.up()]
        for each in clients:
            await stack.enter_async_context(each)
        world = World(clients, ledger, counter)
        await world.holds()
        return world


def doctor(servers: Cluster) -> None:
    arguments = [str(binary()), "doctor", "--store", servers.database]
    env = servers.members[1].environment()
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300 + 30 * FAULTS)
async def test_any_series_of_faults_loses_nothing_and_does_nothing_twice(chaos, counter):
    begun, ledger = time.monotonic(), Ledger()
    faults = Faults(chaos, SEED, OUTAGE)
    await play(chaos, counter, ledger, faults)
    world = await judge(chaos, counter, ledger)
    doctor(chaos)
    repeated = len(counter.paid) - len({(each.job, each.step) for each in counter.paid})
    print(
        f"{sum(faults.count.values())} faults in {time.monotonic() - begun:.0f} s, seed {SEED}: {dict(faults.count)}\n"
        f"servers that lost their place: {sum(faults.lost.values())}; {len(ledger.runs)} runs acknowledged, "
        f"{ledger.lost} requests without an answer; {len(counter.paid)} payments, {repeated} of them made again; "
        f"{world.events} events compared; {len(world.given_up)} runs given up; {len(counter.hooks)} webhooks"
    )
    assert len(ledger.runs) >= 200
