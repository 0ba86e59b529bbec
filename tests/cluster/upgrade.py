"""The release before several servers, and this one, on the same PostgreSQL store, one after the other
under load. For scripts/soak: it builds the older release.

    HEDDLE_CLUSTER_OLD      the program of the older release; default: built from OLD_RELEASE
    HEDDLE_CLUSTER_SEED     another order of events (1)
"""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from agents import Agent, Ledger
from chaos import PATIENCE, first_failure, judge
from cluster import Cluster, Member
from counting import Counter, script
from server import ROOT, build_folder

# The last commit before the first one of several servers: `git log --format=%H -1 b1fcba0c^`. The
# release after this one replaces it by the commit of this one.
OLD_RELEASE = "f1f4865c2c71e8b19cf19461e262f2649c4fa422"
SEED = int(os.environ.get("HEDDLE_CLUSTER_SEED", "1"))
AGENTS = 40
RUNS = 60  # acknowledged, before each step


def old_program() -> Path:
    """Builds the older release beside the builds of this one, once."""
    if named := os.environ.get("HEDDLE_CLUSTER_OLD"):
        return Path(named)
    folder = build_folder() / f"release-{OLD_RELEASE[:12]}"
    program = folder / "build/heddle"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", OLD_RELEASE], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        setup = ["meson", "setup", folder / "build", folder, "--buildtype=release", "-Dtests=disabled"]
        subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", folder / "build", "heddle"], check=True, stdout=subprocess.DEVNULL)
    return program


class OldMember(Member):
    """A server of the older release, which knows no others."""

    def __init__(self, cluster: Cluster, name: str, **options):
        super().__init__(cluster, name, **options)
        self.joins = False
        self.program = old_program()

    def command(self) -> list[str]:
        return [str(self.program), *super().command()[1:]]

    def is_refused(self, *others: Member) -> None:
        """A start ends with an error that names another server, or the version of the store."""
        begun = len(self.log.read_text()) if self.log.exists() else 0
        with pytest.raises(RuntimeError):
            self.start()
        self.process = None
        said = self.log.read_text()[begun:]
        print(f"refused: {said.strip().splitlines()[-1]}")
        assert any(f":{port}" in said for each in others for port in ports(each)) or "supports versions" in said, said


def ports(member: Member) -> tuple[str, str]:
    return str(member.port), member.address.rpartition(":")[2]


def is_refused_by(old: OldMember, new: Member) -> None:
    """A server of this release does not start beside one of the older release."""
    begun = time.monotonic()
    with pytest.raises(RuntimeError):
        new.start()
    new.process = None
    print(f"refused after {time.monotonic() - begun:.1f} s: {new.tail(1)}")
    assert str(old.port) in new.tail(3), new.tail()


async def more_runs(ledger: Ledger) -> None:
    wanted = len(ledger.runs) + RUNS
    async with asyncio.timeout(300):
        while len(ledger.runs) < wanted:
            await asyncio.sleep(0.2)


async def roll(servers: Cluster, ledger: Ledger) -> tuple[str, str]:
    """Returns the version of the store before and after a server of this release was refused."""
    old, second, third = servers.members
    await more_runs(ledger)
    version = "SELECT version FROM schema_version"
    before = servers.sql(version)
    await asyncio.to_thread(is_refused_by, old, second)
    assert old.is_up()
    after = servers.sql(version)
    await more_runs(ledger)
    await asyncio.to_thread(old.stop)
    await asyncio.to_thread(second.start)
    await asyncio.to_thread(old.is_refused, second)
    await more_runs(ledger)
    await asyncio.to_thread(third.start)
    await asyncio.to_thread(old.is_refused, second, third)
    await more_runs(ledger)
    assert second.is_up() and third.is_up()
    return before, after


async def play(servers: Cluster, counter: Counter, ledger: Ledger) -> tuple[str, str]:
    over = asyncio.Event()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    async with httpx.AsyncClient(base_url=servers.url, timeout=PATIENCE, limits=limits) as http:
        agents = [Agent(number, http, ledger, SEED, counter.url + "/hook", 1) for number in range(AGENTS)]
        tasks = [asyncio.create_task(agent.work(over)) for agent in agents]
        try:
            rolling = asyncio.create_task(roll(servers, ledger))
            await first_failure(tasks, rolling)
            over.set()
            await asyncio.gather(*tasks)
            await asyncio.to_thread(servers.comes_to_rest, 180)
            return rolling.result()
        finally:
            for task in tasks:
                task.cancel()


@pytest.mark.timeout(3600)
async def test_the_older_release_is_replaced_under_load(cluster, counter, mock):
    model = mock(script(latency_ms=200, delay_ms=20))
    servers = cluster(
        {"payer": counter.agent()},
        member=[OldMember, Member, Member],
        begin=1,
        env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-of-the-environment"},
        options=["--stream-heartbeat", "1", "--drain", "2"],
    )
    ledger = Ledger()
    before, after = await play(servers, counter, ledger)
    world = await judge(servers, counter, ledger)
    print(
        f"{len(ledger.runs)} runs acknowledged, {ledger.lost} requests without an answer, {world.events} events compared"
    )
    assert before == after, "a server that was refused has changed the store"
