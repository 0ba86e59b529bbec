"""`heddle rekey`: a new key for principals while all users stay active."""

from __future__ import annotations

import json
import subprocess
import threading
import time

import pytest
from moving import ECHO, NEW_KEY, configure, make_thread, rekey, say
from programs import binary, wait_for
from secured import PRINCIPAL_KEY


class Talker(threading.Thread):
    """A user who sends messages on several threads, and remembers what was acknowledged."""

    def __init__(self, server, name: str):
        super().__init__(daemon=True)
        self.server, self.user = server, name
        self.said: dict[str, list[str]] = {}
        self.items: dict[str, int] = {}
        self.ended = threading.Event()
        self.turned_away = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self.server.as_user(self.user) as client:
                count = 0
                while not self.ended.is_set():
                    self.turn(client, count)
                    count += 1
        except BaseException as failure:  # reported by the test
            self.failure = failure

    def accept(self, answer) -> bool:
        """Returns False after a 503, which means retry; every other response must be a success."""
        if answer.status_code == 503:
            assert answer.headers["retry-after"], "503 without Retry-After"
            self.turned_away += 1
            time.sleep(0.05)
            return False
        assert answer.status_code < 300, f"{self.user}: {answer.status_code} {answer.text}"
        return True

    def turn(self, client, count: int) -> None:
        if len(self.said) < 3:
            made = client.post("/threads", json={})
            if self.accept(made):
                self.said[made.json()["thread_id"]] = []
        for thread, said in self.said.items():
            text = f"{self.user} {count}"
            body = {"assistant_id": "echo", "input": {"log": [text]}}
            if self.accept(client.post(f"/threads/{thread}/runs/wait", json=body)):
                said.append(text)
        item = {"namespace": ["talk"], "key": self.user, "value": {"count": count}}
        if self.accept(client.put("/store/items", json=item)):
            self.items[self.user] = count

    def check(self) -> None:
        with self.server.as_user(self.user) as client:
            for thread, said in self.said.items():
                answer = client.get(f"/threads/{thread}/state")
                assert answer.status_code == 200, f"{self.user} {thread}: {answer.status_code} {answer.text}"
                log = answer.json()["values"].get("log", [])
                assert [text for text in log if text != "heard"] == said
            found = client.post("/threads/search", json={"limit": 100}).json()
            assert {each["thread_id"] for each in found} >= set(self.said)
            for key, count in self.items.items():
                item = client.get("/store/items", params={"namespace": "talk", "key": key}).json()
                assert item["value"] == {"count": count}


def test_under_load(secured, store):
    server = secured(store=store, graphs={"echo": ECHO}, env={"TEST_NEW_KEY": NEW_KEY})
    talkers = [Talker(server, f"user{n}") for n in range(4)]
    with server.as_user("idle") as client:
        idle = make_thread(client, metadata={"kept": True})
        say(client, idle, "before")

    server.stop()
    configure(server, "new", "old")
    server.start()
    # No principal has moved yet: threads of the old key are visible.
    with server.as_user("idle") as client:
        assert client.get(f"/threads/{idle}").status_code == 200
        # A new user gets a principal of the new key at once.
    for talker in talkers:
        talker.start()
    wait_for(lambda: all(len(t.said) == 3 and all(t.said.values()) for t in talkers), what="everybody to talk")
    would = rekey(server, "--dry-run")
    assert would.startswith("would move 1 principals, 1 threads"), would
    moved = rekey(server)
    assert moved.startswith("moved 1 principals, 1 threads") and "no data is left" in moved, moved
    finish(talkers)

    # All users now have principals under 2027. With the old key current again, all of them must
    # move.
    server.stop()
    configure(server, "old", "new")
    server.start()
    talkers = [resume(talker, server) for talker in talkers]
    turns = {t.user: sum(map(len, t.said.values())) for t in talkers}
    wait_for(lambda: all(t.failure or sum(map(len, t.said.values())) > turns[t.user] for t in talkers), what="talking")
    moved = rekey(server)
    assert moved.startswith("moved 5 principals") and "no data is left" in moved, moved
    turns = {t.user: sum(map(len, t.said.values())) for t in talkers}
    wait_for(
        lambda: all(t.failure or sum(map(len, t.said.values())) > turns[t.user] for t in talkers), what="talking on"
    )
    finish(talkers)
    assert sum(t.turned_away for t in talkers) > 0, "nobody noticed"
    for talker in talkers:
        talker.check()

    # The other key is not needed any more.
    server.stop()
    configure(server, "old")
    server.start()
    for talker in talkers:
        talker.check()
    with server.as_user("idle") as client:
        assert say(client, idle, "after")["log"] == ["before", "heard", "after", "heard"]
        assert client.get(f"/threads/{idle}").json()["metadata"]["kept"] is True
    assert "would move 0 principals" in rekey(server, "--dry-run")


def resume(talker: Talker, server) -> Talker:
    again = Talker(server, talker.user)
    again.said, again.items = talker.said, talker.items
    again.start()
    return again


def finish(talkers: list[Talker]) -> None:
    for talker in talkers:
        talker.ended.set()
    for talker in talkers:
        talker.join(120)
        assert not talker.is_alive()
        if talker.failure:
            raise talker.failure


def test_shared_threads_are_moved(secured, store):
    """Participants keep their access, both to a thread that moves and when they are moved."""
    server = secured(store=store, graphs={"echo": ECHO}, env={"TEST_NEW_KEY": NEW_KEY})
    with server.as_user("owner") as owner, server.as_user("guest") as guest:
        thread = make_thread(owner)
        say(owner, thread, "mine")
        for body in ({"issuer": "main", "subject": "guest", "role": "editor"},
                     {"issuer": "main", "organisation": "acme", "role": "viewer"}):  # fmt: skip
            answer = owner.post(f"/threads/{thread}/participants", json=body)
            if answer.status_code == 404:
                pytest.skip("no participants")
            assert answer.status_code < 300, answer.text
        say(guest, thread, "ours")
    server.stop()
    configure(server, "new", "old")
    server.start()
    assert "no data is left" in rekey(server)
    server.stop()
    configure(server, "new")
    server.start()
    with server.as_user("owner") as owner, server.as_user("guest") as guest:
        assert say(guest, thread, "still ours")["log"][-2] == "still ours"
        assert len(owner.get(f"/threads/{thread}/participants").json()) >= 2
        runs = owner.get(f"/threads/{thread}/runs").json()
        assert len(runs) == 3
    with server.client(server.main.member("employee", "acme")) as employee:
        assert employee.get(f"/threads/{thread}/state").status_code == 200


def test_interrupted_and_begun_again(secured):
    server = secured(store="postgres", graphs={"echo": ECHO}, env={"TEST_NEW_KEY": NEW_KEY})
    threads = {}
    for name in ("ann", "ben", "cem"):
        with server.as_user(name) as client:
            threads[name] = [make_thread(client) for _ in range(5)]
            for thread in threads[name]:
                say(client, thread, name)
    server.stop()
    configure(server, "new", "old")
    for seconds in (6.1, 6.4):
        killed_after(server, seconds)
    assert "no data is left" in rekey(server)
    configure(server, "new")
    server.start()
    for name, made in threads.items():
        with server.as_user(name) as client:
            for thread in made:
                state = client.get(f"/threads/{thread}/state").json()
                assert state["values"]["log"] == [name, "heard"]
                assert client.get(f"/threads/{thread}/runs").json()[0]["status"] == "success"


def test_interrupted_and_taken_back(secured):
    """An interrupted move is reversed when the keys change back."""
    server = secured(graphs={"echo": ECHO}, env={"TEST_NEW_KEY": NEW_KEY})
    with server.as_user("ann") as client:
        threads = [make_thread(client) for _ in range(40)]
        say(client, threads[0], "ann")
    server.stop()
    configure(server, "new", "old")
    killed_after(server, 6.15)
    configure(server, "old", "new")
    assert "no data is left" in rekey(server)
    configure(server, "old")
    server.start()
    with server.as_user("ann") as client:
        assert client.get(f"/threads/{threads[0]}/state").json()["values"]["log"] == ["ann", "heard"]
        assert all(client.get(f"/threads/{thread}").status_code == 200 for thread in threads)


def test_runs_that_do_not_end(secured):
    """A principal with a running run is not moved, and loses nothing."""
    slow = json.loads(json.dumps(ECHO))
    slow["nodes"]["answer"] = {"kind": "sleep", "ms": 600000}
    server = secured(graphs={"echo": ECHO, "slow": slow}, env={"TEST_NEW_KEY": NEW_KEY})
    with server.as_user("ann") as client:
        done = make_thread(client)
        say(client, done, "ann")
    server.stop()
    configure(server, "new", "old")
    server.start()
    with server.as_user("ann") as client:
        thread = make_thread(client)
        run = client.post(f"/threads/{thread}/runs", json={"assistant_id": "slow", "input": {"log": ["x"]}}).json()[
            "run_id"
        ]
        wait_for(lambda: client.get(f"/threads/{thread}/runs/{run}").json()["status"] == "running", what="the run")
        assert "1 principals not moved" in rekey(server, "--wait", "1", status=1)
        assert say(client, done, "again")["log"] == ["ann", "heard", "again", "heard"]
        assert client.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": 1}).status_code < 300
        assert "no data is left" in rekey(server)
        wait_for(lambda: client.get(f"/threads/{thread}").status_code == 200, what="the move to be noticed")
        assert client.get(f"/threads/{thread}/runs/{run}").json()["status"] == "interrupted"


def killed_after(server, seconds: float) -> None:
    command = [str(binary()), "rekey", "--config", str(server.config_file), "--store", server.store]
    process = subprocess.Popen(command, env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_arguments(secured):
    server = secured(graphs={"echo": ECHO}, env={"TEST_NEW_KEY": NEW_KEY})
    assert PRINCIPAL_KEY not in server.config_file.read_text()
    assert "--config FILE is required" in server.tool("rekey", status=2).stderr
    assert (
        "takes a number of seconds"
        in server.tool("rekey", "--config", str(server.config_file), "--wait", "x", status=2).stderr
    )
