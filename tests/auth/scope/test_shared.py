"""Shared threads: the owner of assistants, runs and crons that are used there."""

from __future__ import annotations

import uuid

import pytest
from bosses import BOSS, MESSAGES, call, contents
from official import GRAPHS, Team, fire, refused
from programs import wait_for

PARROT = {
    "name": "parrot",
    "state": MESSAGES,
    "nodes": {"reply": {"kind": "script", "replies": [{"content": "{{config.voice}}: {{messages[-1].content}}"}]}},
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}
HOUR_MS = 3_600_000
YEARLY = "0 0 1 1 *"  # fires only when a test makes it due (fire), not at a full minute in between


@pytest.fixture
def server(secured):
    return secured(graphs={**GRAPHS, "boss": BOSS, "parrot": PARROT})


@pytest.fixture
def team(server):
    with Team(server) as made:
        for name in ("alice", "bob"):
            made[name].assistants.create("parrot", name="alpha", config={"configurable": {"voice": name}})
        yield made


def share(team, thread: str, name: str, role: str) -> str:
    body = {"issuer": "main", "subject": team.subject(name), "role": role}
    return team.ask("alice", "POST", f"/threads/{thread}/participants", json=body)["participant_id"]


def asker(run: dict) -> str:
    return run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"]


def test_runs_are_their_askers_doing(team):
    alice, bob = team["alice"], team["bob"]
    thread = alice.threads.create()["thread_id"]
    share(team, thread, "bob", "editor")
    assert bob.runs.wait(thread, "who", input={})["seen"][-1]["id"] == team.subject("bob")
    assert alice.runs.wait(thread, "who", input={})["seen"][-1]["id"] == team.subject("alice")
    settings = {"configurable": {"assistants": ["alpha"], "calls": [call("alpha")]}}
    for name in ("bob", "alice"):
        values = team[name].runs.wait(thread, "boss", input={"messages": "go"}, config=settings)
        assert contents(values, "tool")[-1] == f"{name}: hello"
    # It is one thread, hers, and both see all of it.
    runs = [each["run_id"] for each in alice.runs.list(thread)]
    assert len(runs) == 4 and runs == [each["run_id"] for each in bob.runs.list(thread)]
    assert {each["metadata"]["owner"] for each in bob.runs.list(thread)} == {team.subject("alice")}
    assert bob.threads.update(thread, metadata={"owner": "bob"})["metadata"]["owner"] == team.subject("alice")


def test_a_participant_makes_nothing_in_the_owners_compartment(team):
    alice, bob = team["alice"], team["bob"]
    thread = alice.threads.create()["thread_id"]
    share(team, thread, "bob", "editor")
    alice.runs.wait(thread, "echo", input={"messages": "hi"})
    copied = bob.threads.copy(thread)
    assert copied["metadata"]["owner"] == team.subject("bob")
    assert contents(bob.threads.get_state(copied["thread_id"])["values"]) == ["hi", "You said: hi"]
    refused(404, alice.threads.get, copied["thread_id"])
    alice.threads.delete(thread)
    refused(404, bob.runs.wait, thread, "echo", input={"messages": "again"})
    # The thread does not exist any more: a new one with that id is bob's.
    bob.runs.wait(thread, "echo", input={"messages": "mine"}, if_not_exists="create")
    assert bob.threads.get(thread)["metadata"]["owner"] == team.subject("bob")
    refused(404, alice.threads.get, thread)


def test_an_own_thread_comes_first(team):
    alice, bob = team["alice"], team["bob"]
    thread = alice.threads.create(metadata={"of": "alice"})["thread_id"]
    share(team, thread, "bob", "viewer")
    assert bob.threads.get(thread)["metadata"]["of"] == "alice"
    bob.threads.create(thread_id=thread, metadata={"of": "bob"})
    assert bob.threads.get(thread)["metadata"]["of"] == "bob"
    bob.threads.delete(thread)
    assert bob.threads.get(thread)["metadata"]["of"] == "alice" == alice.threads.get(thread)["metadata"]["of"]


def test_editors_and_viewers(team):
    alice, bob, carol = team["alice"], team["bob"], team["carol"]
    thread = alice.threads.create()["thread_id"]
    share(team, thread, "bob", "editor")
    share(team, thread, "carol", "viewer")
    path = f"/threads/{thread}"
    alice.runs.wait(thread, "echo", input={"messages": "hi"})
    assert contents(carol.threads.get_state(thread)["values"]) == ["hi", "You said: hi"]
    bob.threads.update_state(thread, {"messages": [{"role": "user", "content": "edited"}]})
    bob.threads.update(thread, metadata={"by": "bob"})
    run = bob.runs.create(thread, "nap", input={"ms": HOUR_MS})["run_id"]
    body = {"thread_id": thread, "run_ids": [run]}
    for method, where, sent in (
        ("POST", f"{path}/runs", {"assistant_id": "echo", "input": {}}),
        ("POST", f"{path}/state", {"values": {}}),
        ("PATCH", path, {"metadata": {"x": 1}}),
        ("POST", f"{path}/runs/{run}/cancel", {}),
        ("POST", "/runs/cancel", body),
        ("POST", f"{path}/runs/crons", {"assistant_id": "echo", "schedule": YEARLY}),
    ):
        team.ask("carol", method, where, 403, json=sent)
    for who in ("bob", "carol"):
        team.ask(who, "DELETE", path, 403)
    team.ask("bob", "PATCH", path, 403, json={"ttl": 60})
    team.ask("dora", "POST", "/runs/cancel", 404, json=body)
    team.ask("bob", "POST", "/runs/cancel", 204, json=body)
    wait_for(lambda: alice.runs.get(thread, run)["status"] == "interrupted", what="the end of a run")


def test_viewers_cancel_nothing(team, server):
    alice = team["alice"]
    thread = alice.threads.create()["thread_id"]
    share(team, thread, "carol", "viewer")
    share(team, thread, "bob", "editor")
    run = alice.runs.create(thread, "nap", input={"ms": HOUR_MS}, stream_resumable=True)["run_id"]
    wait_for(lambda: alice.runs.get(thread, run)["status"] == "running", what="a run at work")

    def look_on(name: str) -> None:
        """Reads a part of the stream, then disconnects."""
        where = f"/threads/{thread}/runs/{run}/stream"
        with server.client(team.token(name), headers={"Last-Event-ID": "-1"}) as http:
            with http.stream("GET", where, params={"cancel_on_disconnect": "true"}) as answer:
                assert answer.status_code == 200 and next(answer.iter_lines())

    look_on("carol")
    for _ in range(20):
        assert alice.runs.get(thread, run)["status"] == "running"
    look_on("bob")
    wait_for(lambda: alice.runs.get(thread, run)["status"] == "interrupted", what="a run that its editor has left")


def test_a_restart_keeps_the_caller_of_a_run(team, server):
    alice, bob = team["alice"], team["bob"]
    thread = alice.threads.create()["thread_id"]
    share(team, thread, "bob", "editor")
    line = {"checkpoint_ns": "one line for both"}
    nap = alice.runs.create(thread, "nap", input={"ms": HOUR_MS}, config={"configurable": line})["run_id"]
    settings = {"configurable": {"assistants": ["alpha"], "calls": [call("alpha")], **line}}
    made = bob.runs.create(thread, "boss", input={"messages": "go"}, config=settings, multitask_strategy="enqueue")
    run = made["run_id"]
    assert bob.runs.get(thread, run)["status"] == "pending"
    server.kill()
    server.restart()
    wait_for(lambda: alice.runs.get(thread, nap)["status"] == "running", what="a run that goes on")
    alice.runs.cancel(thread, nap, wait=True)
    values = bob.runs.join(thread, run)
    assert contents(values, "tool") == ["bob: hello"]
    assert asker(bob.runs.get(thread, run)) == team.subject("bob")


def test_crons_work_as_their_maker(team, server):
    alice = team["alice"]
    settings = {"configurable": {"assistants": ["alpha"], "calls": [call("alpha")]}}
    thread = alice.threads.create()["thread_id"]
    cron = alice.crons.create_for_thread(thread, "boss", schedule=YEARLY, input={"messages": "go"}, config=settings)
    alice.crons.create("who", schedule="0 0 1 1 *", input={}, on_run_completed="keep")
    fire(server, cron["cron_id"])
    wait_for(lambda: alice.runs.list(thread, status="success"), what="a run by the clock")
    assert contents(alice.threads.get_state(thread)["values"], "tool")[-1] == "alice: hello"
    assert asker(alice.runs.list(thread, limit=1)[0]) == team.subject("alice")
    assert team["bob"].threads.count() == 0


def test_crons_on_a_shared_thread_last_as_long_as_the_share(team, server):
    alice, bob = team["alice"], team["bob"]
    settings = {"configurable": {"assistants": ["alpha"], "calls": [call("alpha")]}}
    thread = alice.threads.create()["thread_id"]
    participant = share(team, thread, "bob", "editor")
    cron = bob.crons.create_for_thread(thread, "boss", schedule=YEARLY, input={"messages": "go"}, config=settings)
    assert alice.crons.count() == 0
    fire(server, cron["cron_id"])
    wait_for(lambda: alice.runs.list(thread, status="success"), what="a run by the clock")
    assert contents(alice.threads.get_state(thread)["values"], "tool")[-1] == "bob: hello"
    team.ask("alice", "DELETE", f"/threads/{thread}/participants/{participant}", 204)
    before = len(alice.runs.list(thread, limit=1000))
    fire(server, cron["cron_id"])
    wait_for(lambda: bob.crons.count() == 0, what="the end of a cron")
    assert len(alice.runs.list(thread, limit=1000)) == before and bob.threads.count() == 0


def test_no_cron_for_a_thread_of_an_organisation(team, server):
    thread = team["alice"].threads.create()["thread_id"]
    body = {"issuer": "main", "organisation": "guild", "role": "editor"}
    team.ask("alice", "POST", f"/threads/{thread}/participants", json=body)
    token = server.main.member(team.subject("bob"), "guild")
    run = {"assistant_id": "echo", "input": {"messages": "hi"}}
    server.ask("POST", f"/threads/{thread}/runs/wait", token=token, json=run)
    server.ask("POST", f"/threads/{thread}/runs/crons", 403, token=token, json={**run, "schedule": YEARLY})
    unknown = f"/threads/{uuid.uuid4()}/runs/crons"
    server.ask("POST", unknown, 404, token=token, json={**run, "schedule": YEARLY})
