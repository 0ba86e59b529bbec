"""Retention from outside: pruning by branches, lifetimes, sweeps, `heddle prune`."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
import string
import time

import pytest
from load import at_pace
from programs import wait_for
from server import GRAPHS

SERVED = {name: GRAPHS / f"{name}.json" for name in ("echo", "loop", "nap", "nested")}
SOON = 0.01  # minutes


class Talk:
    """A thread with branches."""

    def __init__(self, http, pace=None, **body):
        self.http, self.pace = http, pace or (lambda: None)
        self.id = self.ask("POST", "/threads", json=body)["thread_id"]
        self.path = f"/threads/{self.id}"

    def ask(self, method: str, path: str, status: int = 200, **options):
        answer = self.http.request(method, path, **options)
        self.pace()
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    def say(self, text: str, at: str | None = None, **more) -> str:
        """Runs one turn; returns its last checkpoint."""
        body = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": text}]}, **more}
        if at:
            body["checkpoint_id"] = at
        self.ask("POST", f"{self.path}/runs/wait", json=body)
        return self.head()

    def head(self) -> str:
        return self.ask("GET", f"{self.path}/state")["checkpoint"]["checkpoint_id"]

    def state(self, checkpoint: str) -> dict:
        return self.ask("GET", f"{self.path}/state/{checkpoint}")["values"]

    def history(self) -> list[dict]:
        return self.ask("GET", f"{self.path}/history", params={"limit": 1000})

    def branches(self) -> dict:
        return self.ask("GET", f"{self.path}/branches")

    def prune(self, **body) -> dict:
        return self.ask("POST", "/threads/prune", json={"thread_ids": [self.id], **body})

    def fork(self) -> tuple[str, dict[str, dict]]:
        """Two turns, then two branches of two turns each. Returns the fork and the ends with their
        states."""
        self.say("one")
        parting = self.say("two")
        first = self.say("left again") if self.say("left", at=parting) else ""
        second = self.say("right again") if self.say("right", at=parting) else ""
        return parting, {end: self.state(end) for end in (first, second)}


def parents(history: list[dict]) -> dict[str, str | None]:
    return {
        each["checkpoint"]["checkpoint_id"]: (each["parent_checkpoint"] or {}).get("checkpoint_id") for each in history
    }


def test_branches_stay(secured, store):
    """The heads keep their states and their fork, and can continue."""
    with secured(store=store, graphs=SERVED).as_user("alice") as http:
        talk = Talk(http)
        parting, ends = talk.fork()
        before = talk.history()
        foreseen = talk.prune(strategy="keep_branches", keep_last=1, dry_run=True)
        assert foreseen["dry_run"] and foreseen["pruned_count"] == 1 and foreseen["bytes"] > 0
        assert parents(talk.history()) == parents(before)
        assert talk.prune(strategy="keep_branches", keep_last=1) == {"pruned_count": 1}
        left = parents(talk.history())
        assert len(before) - len(left) == foreseen["checkpoints"] > 0
        assert set(left) == {parting, *ends}
        assert left == {parting: None, **{end: parting for end in ends}}
        assert {end: talk.state(end) for end in ends} == ends
        assert len(talk.branches()["branches"]) == 3
        head, other = sorted(ends, key=lambda end: end == talk.head(), reverse=True)
        again = talk.say("and on", at=other)
        assert talk.state(again)["messages"][: len(ends[other]["messages"])] == ends[other]["messages"]
        assert talk.state(head) == ends[head]


def test_a_chosen_head_stays(secured, store):
    """In the middle of a branch, with the checkpoints before it."""
    with secured(store=store, graphs=SERVED).as_user("alice") as http:
        talk = Talk(http)
        ids = [talk.say(str(number)) for number in range(4)]
        chosen = talk.state(ids[1])
        talk.ask("PATCH", f"{talk.path}/branches", json={"checkpoint_id": ids[1]})
        assert talk.prune(strategy="keep_branches", keep_last=1) == {"pruned_count": 1}
        assert parents(talk.history()) == {ids[3]: ids[1], ids[1]: None}
        assert talk.head() == ids[1] and talk.state(ids[1]) == chosen
        again = talk.say("another way")
        assert parents(talk.history())[ids[3]] == ids[1]
        assert talk.state(again)["messages"][:4] == chosen["messages"]


@pytest.mark.parametrize("strategy", ["delete", "keep_latest", "keep_branches"])
def test_a_dry_run_counts_the_removals(secured, strategy):
    server = secured(graphs=SERVED)
    with server.as_user("alice") as http:
        talk = Talk(http)
        talk.fork()
        before = talk.history()
        foreseen = talk.prune(strategy=strategy, dry_run=True)
        assert talk.history() == before
        assert foreseen["bytes"] > 0 and foreseen["checkpoints"] > 0
        assert foreseen["runs"] == (6 if strategy == "delete" else 0)
        talk.prune(strategy=strategy)
        left = [] if strategy == "delete" else talk.history()
        assert len(before) - len(left) == foreseen["checkpoints"]


def test_wrong_requests(secured):
    with secured(graphs=SERVED).as_user("alice") as http:
        talk = Talk(http)
        for wrong in ({"strategy": "burn"}, {"keep_last": 0}, {"keep_last": "5"}, {"dry_run": "yes"}):
            answer = http.post("/threads/prune", json={"thread_ids": [talk.id], **wrong})
            assert answer.status_code == 422, answer.text
        for wrong in ({"strategy": "burn"}, {"keep_last": 0}, {"sliding": 1}, {"ttl": -1}):
            answer = http.post("/threads", json={"ttl": {"ttl": 1, **wrong}})
            assert answer.status_code == 422, answer.text
        assert talk.ask("GET", talk.path)["status"] == "idle"


def ttl_of(talk: Talk) -> dict:
    return talk.ask("GET", talk.path, params={"include": "ttl"})["ttl"]


def test_times_slide_unless_they_are_fixed(secured):
    with secured(graphs=SERVED).as_user("alice") as http:
        sliding, fixed = Talk(http, ttl=60), Talk(http, ttl={"ttl": 60, "sliding": False})
        assert ttl_of(fixed)["sliding"] is False and "sliding" not in ttl_of(sliding)
        before = [ttl_of(talk)["expires_at"] for talk in (sliding, fixed)]
        for talk in (sliding, fixed):
            talk.say("hello")
        after = [ttl_of(talk)["expires_at"] for talk in (sliding, fixed)]
        assert after[0] > before[0] and after[1] == before[1]
        fixed.ask("PATCH", fixed.path, json={"ttl": {"ttl": 90, "refresh": False, "strategy": "keep_branches"}})
        changed = ttl_of(fixed)
        assert changed["expires_at"] > before[1] and changed["keep_last"] == 1 and changed["sliding"] is False


def test_sweeps_prune_by_branches(secured, store):
    """The server's strategy for threads, and the metrics of its sweeps."""
    config = {"ttl": {"threads": 0.05, "strategy": "keep_branches", "keep_last": 1, "sweep_interval": 0.01}}
    server = secured(store=store, graphs=SERVED, config=config)

    def forked(pace):
        """The fork must not be swept while the branches are created."""
        talk = Talk(http, pace)
        return talk, *talk.fork()

    with server.as_user("alice") as http:
        brief = Talk(http, ttl={"ttl": SOON})
        talk, parting, ends = at_pace(3, forked)
        wait_for(lambda: set(parents(talk.history())) == {parting, *ends}, what="a sweep")
        wait_for(lambda: http.get(brief.path).status_code == 404, what="the end of a thread")
        assert {end: talk.state(end) for end in ends} == ends
        wait_for(lambda: server.metrics()["heddle_sweep_pruned_total"] >= 1, what="a count")
        counted = server.metrics()
        assert counted["heddle_sweep_threads_total"] >= 1 and counted["heddle_sweep_bytes_total"] > 0
        assert counted["heddle_sweep_checkpoints_total"] >= 1 and counted["heddle_sweeps_failed_total"] == 0
        assert abs(counted["heddle_sweep_last_time_seconds"] - time.time()) < 600
        assert talk.ask("GET", talk.path, params={"include": "ttl"})["ttl"]["keep_last"] == 1


def test_stored_events_are_bounded_by_bytes(secured):
    """A thread's stored events, of many runs, each larger than the limit for all of them."""
    server = secured(graphs=SERVED, config={"stream": {"retention": {"bytes": 20000}}})
    chance = random.Random(1)
    with server.as_user("alice") as http:
        talk = Talk(http)
        for _ in range(6):
            noise = "".join(chance.choices(string.ascii_letters + string.digits, k=40000))
            talk.say(noise, stream_resumable=True, stream_mode=["values"])
            talk.prune(strategy="keep_latest")
    server.stop()
    with contextlib.closing(sqlite3.connect(server.store.removeprefix("sqlite:"))) as database:
        sizes = [row[0] for row in database.execute("SELECT length(data) FROM event_pages")]
    # The newest page stays whatever its size, and the last one may be stored after the check of the
    # others.
    assert sizes and sum(sizes) <= 20000 + 2 * max(sizes), sizes
    assert len(sizes) <= 3


# ---- heddle prune


def numbers(text: str) -> dict[str, int]:
    return {
        name: int(number)
        for number, name in re.findall(r"(\d+) (threads|checkpoints|writes|runs|bytes)", text.splitlines()[0])
    }


def test_the_command_line(secured, store):
    """While a server runs; threads of other users are unchanged."""
    server = secured(store=store, graphs=SERVED)
    with server.as_user("alice") as alice, server.as_user("bob") as bob:
        talk, other = Talk(alice), Talk(bob)
        parting, ends = talk.fork()
        other.fork()
        before, untouched = talk.history(), other.history()
        prune = ["prune", "--store", server.store, "--config", str(server.config_file), "--subject", "main/alice"]
        keep = [*prune, "--strategy", "keep_branches", "--keep-last", "1"]
        foreseen = numbers(server.tool(*keep, "--dry-run").stdout)
        assert talk.history() == before
        said = server.tool(*keep, "--vacuum").stdout
        assert numbers(said) == foreseen and said.startswith("removed ")
        left = talk.history()
        assert set(parents(left)) == {parting, *ends}
        assert len(before) - len(left) == foreseen["checkpoints"]
        assert other.history() == untouched
        assert talk.say("and on") not in ends
        server.tool(*prune, "--strategy", "delete", status=2)  # no thread selected
        server.tool(*prune, "--strategy", "delete", "--older-than", "60")
        assert talk.ask("GET", talk.path)["status"] == "idle"
        gone = numbers(server.tool(*prune, "--strategy", "delete", "--thread", talk.id).stdout)
        assert gone["threads"] == 1 and gone["runs"] == 7
        assert alice.get(talk.path).status_code == 404
        assert other.history() == untouched


def test_the_command_line_removes_expired_threads(secured):
    server = secured(graphs=SERVED, options=["--ttl-sweep-interval", "0"])
    with server.as_user("alice") as http:
        brief, lasting = Talk(http, ttl=SOON), Talk(http)
        wait_for(lambda: http.get(brief.path).status_code == 404, what="the end of a thread")
        arguments = ["prune", "--store", server.store, "--config", str(server.config_file)]
        assert numbers(server.tool(*arguments, "--dry-run").stdout)["threads"] == 1
        assert numbers(server.tool(*arguments).stdout)["threads"] == 1
        assert numbers(server.tool(*arguments).stdout)["threads"] == 0
        assert http.get(lasting.path).status_code == 200


@pytest.mark.parametrize(
    "arguments", [["--strategy", "burn"], ["--keep-last", "2"], ["--strategy", "keep_branches", "--keep-last", "0"], ["--what"]]
)  # fmt: skip
def test_wrong_arguments(secured, arguments):
    server = secured(graphs=SERVED)
    assert "usage: heddle prune" in server.tool("prune", "--store", server.store, *arguments, status=2).stderr
