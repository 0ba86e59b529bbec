"""Open streams end when their authorization ends, while the run continues."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time

import pytest
from programs import wait_for
from secured import Secured
from sharing import GRAPHS, HOUR_MS, Open, Person, crowd, machine, settings


@pytest.fixture(scope="module")
def server(secured_module):
    return secured_module(graphs=GRAPHS)


@pytest.fixture
def napping(server):
    """Alice's thread with a run that naps, and users with whom she may share it."""
    with crowd(server, "alice", "bob", "carol", "oscar@weavers", "olga@weavers") as people:
        alice = people["alice"]
        thread = alice.thread()
        run = alice.nap(thread)
        yield people, thread, run
        assert alice.status(thread, run) == "running", "the run was not left alone"
        alice.wake(thread, run)


def remove(alice: Person, thread: str, **whom) -> None:
    (found,) = [each for each in alice.participants(thread) if whom.items() <= each.items()]
    alice.ask("DELETE", f"/threads/{thread}/participants/{found['participant_id']}", 204)


def test_removal_ends_streams_and_waits(napping):
    people, thread, run = napping
    alice, bob = people["alice"], people["bob"]
    alice.share(thread, "viewer", subject="bob")
    alice.share(thread, "viewer", subject="carol")
    path = f"/threads/{thread}"
    joined = [
        Open(bob, "GET", f"{path}/stream"),
        Open(bob, "GET", f"{path}/runs/{run}/stream", params={"cancel_on_disconnect": "true"}),
    ]
    waiting = Open(bob, "GET", f"{path}/runs/{run}/join", params={"cancel_on_disconnect": "true"})
    others = [Open(people["carol"], "GET", f"{path}/stream"), Open(alice, "GET", f"{path}/stream")]
    for each in joined + others:
        each.wait_open()
    remove(alice, thread, subject="bob")
    for each in joined:
        each.wait_end()
        assert "event: end" not in each.text
    waiting.wait_end()
    assert waiting.status == 404 or "__error__" in waiting.text, (waiting.status, waiting.text)
    bob.ask("GET", f"{path}/stream", 404)
    # Other participants are not disturbed: they see the next run.
    alice.ask("POST", f"{path}/runs", json={"assistant_id": "nap", "input": {"ms": 0}, "multitask_strategy": "enqueue"})
    for each in others:
        assert not each.is_over
    remove(alice, thread, subject="carol")
    others[0].wait_end()
    assert not others[1].is_over


def is_let_in(metrics, requests):
    """That many requests are open, and none of them reads the store any more."""
    return metrics["heddle_http_requests"] == requests and metrics["heddle_store_calls"] == 0


def test_a_wait_gets_404_before_any_output(secured):
    server = secured(graphs=GRAPHS, config={"stream": {"heartbeat": 3600}})
    with crowd(server, "alice", "bob") as people:
        alice, bob = people["alice"], people["bob"]
        thread = alice.thread()
        run = alice.nap(thread)
        alice.share(thread, "viewer", subject="bob")
        witness = Open(bob, "GET", f"/threads/{thread}/stream").wait_open()
        wait_for(lambda: is_let_in(server.metrics(), 2), what="nothing but the stream, and who asks")
        waiting = Open(bob, "GET", f"/threads/{thread}/runs/{run}/join")
        wait_for(lambda: is_let_in(server.metrics(), 3), what="a wait that was let in")
        remove(alice, thread, subject="bob")
        witness.wait_end()
        waiting.wait_end()
        assert waiting.status == 404 and thread in waiting.text, (waiting.status, waiting.text)
        assert alice.status(thread, run) == "running"
        alice.wake(thread, run)
        # A role that is too low gets another response.
        made = alice.share(thread, "editor", subject="bob")
        body = {"assistant_id": "nap", "input": {"ms": HOUR_MS}, "on_disconnect": "cancel"}
        waiting = Open(bob, "POST", f"/threads/{thread}/runs/wait", json=body)
        (run,) = wait_for(
            lambda: alice.ask("GET", f"/threads/{thread}/runs", params={"status": "running"}), what="a run"
        )
        wait_for(lambda: is_let_in(server.metrics(), 2), what="a wait for it that was let in")
        alice.ask("PATCH", f"/threads/{thread}/participants/{made['participant_id']}", json={"role": "viewer"})
        waiting.wait_end()
        assert waiting.status == 403, (waiting.status, waiting.text)
        assert alice.status(thread, run["run_id"]) == "running"
        alice.wake(thread, run["run_id"])


def test_a_lower_role_ends_requests_that_need_more(server):
    with crowd(server, "alice", "edit") as people:
        alice, edit = people["alice"], people["edit"]
        thread = alice.thread()
        made = alice.share(thread, "editor", subject="edit")
        body = {"assistant_id": "nap", "input": {"ms": HOUR_MS}, "on_disconnect": "cancel"}
        own = Open(edit, "POST", f"/threads/{thread}/runs/stream", json=body).wait_open("event: metadata")
        watching = Open(edit, "GET", f"/threads/{thread}/stream").wait_open()
        (run,) = alice.ask("GET", f"/threads/{thread}/runs")
        alice.ask("PATCH", f"/threads/{thread}/participants/{made['participant_id']}", json={"role": "viewer"})
        own.wait_end()
        assert alice.status(thread, run["run_id"]) == "running"
        assert not watching.is_over
        alice.wake(thread, run["run_id"])
        alice.ask("DELETE", f"/threads/{thread}/participants/{made['participant_id']}", 204)
        watching.wait_end()


def test_a_former_editor_does_not_cancel_by_disconnecting(napping):
    people, thread, run = napping
    alice, bob = people["alice"], people["bob"]
    made = alice.share(thread, "editor", subject="bob")
    path = f"/threads/{thread}/runs/{run}/stream"
    stopping = Open(bob, "GET", path, params={"cancel_on_disconnect": "true"}).wait_open()
    looking = Open(bob, "GET", path).wait_open()
    alice.ask("PATCH", f"/threads/{thread}/participants/{made['participant_id']}", json={"role": "viewer"})
    stopping.wait_end()
    assert not looking.is_over


def test_leaving_ends_ones_own(napping):
    people, thread, run = napping
    alice, bob = people["alice"], people["bob"]
    made = alice.share(thread, "viewer", subject="bob")
    stream = Open(bob, "GET", f"/threads/{thread}/runs/{run}/stream").wait_open()
    bob.ask("DELETE", f"/threads/{thread}/participants/{made['participant_id']}", 204)
    stream.wait_end()


def test_an_organisation_goes_with_all_its_members(napping):
    people, thread, run = napping
    alice = people["alice"]
    alice.share(thread, "viewer", organisation="weavers")
    alice.share(thread, "viewer", subject="olga")
    streams = {who: Open(people[who], "GET", f"/threads/{thread}/stream").wait_open() for who in ("oscar", "olga")}
    remove(alice, thread, organisation="weavers")
    streams["oscar"].wait_end()
    # Olga also participates herself.
    assert not streams["olga"].is_over
    people["olga"].ask("GET", f"/threads/{thread}")
    remove(alice, thread, subject="olga")
    streams["olga"].wait_end()


def change_rows(server: Secured, text: str) -> None:
    """Changes rows as another program with the same database does."""
    if server.store.startswith("sqlite:"):
        with contextlib.closing(sqlite3.connect(server.store.removeprefix("sqlite:"), timeout=60)) as database:
            database.execute(text)
            database.commit()
        return
    url, schema = server.store.split("?schema=")
    command = ["psql", url, "-v", "ON_ERROR_STOP=1", "-qc", f"SET search_path TO {schema}; {text}"]
    subprocess.run(command, check=True, capture_output=True)


def test_a_stream_ends_when_another_process_removes_the_participation(store):
    with Secured(store=store, graphs=GRAPHS) as server, crowd(server, "alice", "bob") as people:
        alice = people["alice"]
        thread = alice.thread()
        run = alice.nap(thread)
        alice.share(thread, "viewer", subject="bob")
        stream = Open(people["bob"], "GET", f"/threads/{thread}/runs/{run}/stream").wait_open()
        change_rows(server, "DELETE FROM participants")
        stream.wait_end()
        people["bob"].ask("GET", f"/threads/{thread}", 404)
        assert alice.status(thread, run) == "running"
        alice.wake(thread, run)


def test_a_revoked_key_ends_its_streams(server):
    key, robot = machine(server, "robot")
    _, other = machine(server, "robot")
    thread = robot.thread()
    run = robot.nap(thread)
    stream = Open(robot, "GET", f"/threads/{thread}/runs/{run}/stream").wait_open()
    waiting = Open(robot, "GET", f"/threads/{thread}/runs/{run}/join")
    kept = Open(other, "GET", f"/threads/{thread}/runs/{run}/stream").wait_open()
    server.tool("key", "revoke", key, *settings(server))
    stream.wait_end()
    waiting.wait_end()
    assert waiting.status == 401 or "__error__" in waiting.text, (waiting.status, waiting.text)
    robot.ask("GET", f"/threads/{thread}", 401)
    assert not kept.is_over
    assert other.status(thread, run) == "running"
    other.wake(thread, run)
    robot.http.close()
    other.http.close()


def test_an_expired_token_ends_its_streams(server):
    with crowd(server, "tess") as people:
        tess = people["tess"]
        thread = tess.thread()
        run = tess.nap(thread)
        for seconds in (3, 10, 30, 60):  # long enough to start, on any machine
            brief = Person(server, server.user("tess", exp=int(time.time()) + seconds))
            stream = Open(brief, "GET", f"/threads/{thread}/runs/{run}/stream")
            wait_for(lambda: stream.status, what="a stream that begins")
            if stream.status == 200:
                break
            brief.http.close()
        stream.wait_end()
        brief.ask("GET", f"/threads/{thread}", 401)
        assert tess.status(thread, run) == "running"
        tess.wake(thread, run)
        brief.http.close()
