"""Requests that concern the runs of many threads reach those of all servers; limits count them."""

import httpx
import pytest
from load import eventually
from plain import human
from test_security import SecuredMember


def start(servers, gate, **body):
    runs = []
    for member in servers.members * 2:
        thread = member.thread()
        run = member.ask("POST", f"/threads/{thread}/runs", json=gate.body() | body)
        runs.append((thread, run["run_id"]))
    eventually(lambda: gate.arrived == len(runs))
    return runs


def statuses(member, runs):
    return [member.ask("GET", f"/threads/{thread}/runs/{run}")["status"] for thread, run in runs]


def test_a_cancel_of_all_runs_reaches_those_of_all_servers(shared, gate):
    a, b, c = shared.members
    runs = start(shared, gate)
    assert set(statuses(c, runs)) == {"running"}
    b.ask("POST", "/runs/cancel", 204, json={"status": "all"})
    eventually(lambda: set(statuses(a, runs)) == {"interrupted"})
    with c.client() as http:
        assert http.post("/runs/cancel", json={"status": "all"}).status_code == 404
    gate.open()
    shared.comes_to_rest()


def test_named_runs_are_cancelled_wherever_they_are(shared, gate):
    a, b, c = shared.members
    runs = start(shared, gate)
    for thread, run in runs:
        b.ask("POST", "/runs/cancel", 204, json={"thread_id": thread, "run_ids": [run]})
    eventually(lambda: set(statuses(a, runs)) == {"interrupted"})
    gate.open()
    shared.comes_to_rest()


def test_a_deleted_assistant_has_no_runs(shared, gate):
    a, b, c = shared.members
    other = a.ask("POST", "/assistants", json={"graph_id": gate.body()["assistant_id"]})["assistant_id"]
    left = start(shared, gate)
    gate_arrived = len(left)
    runs = []
    for member in shared.members:
        thread = member.thread()
        run = member.ask("POST", f"/threads/{thread}/runs", json=gate.body() | {"assistant_id": other})
        runs.append((thread, run["run_id"]))
    eventually(lambda: gate.arrived == gate_arrived + len(runs))
    b.ask("DELETE", f"/assistants/{other}")
    assert set(statuses(c, runs)) == {"interrupted"}
    assert set(statuses(c, left)) == {"running"}
    gate.open()
    shared.comes_to_rest()


def test_threads_with_runs_on_other_servers_are_deleted(shared, gate):
    a, b, c = shared.members
    runs = start(shared, gate)
    ids = [thread for thread, _ in runs]
    assert c.ask("POST", "/threads/prune", json={"thread_ids": ids, "strategy": "delete"}) == {"pruned_count": len(ids)}
    for thread in ids:
        with a.client() as http:
            assert http.get(f"/threads/{thread}").status_code == 404
    gate.open()
    shared.comes_to_rest()


def test_runs_of_a_server_that_dies_are_cancelled_by_its_successor(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    runs = start(servers, gate)
    a.kill()
    other = servers.up()[0]
    other.ask("POST", "/runs/cancel", 204, json={"status": "all"})
    eventually(lambda: set(statuses(other, runs)) == {"interrupted"})
    gate.open()
    servers.comes_to_rest()


def test_clients_cannot_give_orders(shared):
    with shared.members[0].client() as http:
        for headers in ({}, {"Heddle-Forwarded": "e30.AAAA"}):
            answer = http.post("/cluster/runs/cancel", json={"action": "interrupt", "runs": []}, headers=headers)
            assert answer.status_code in (401, 404)


def test_the_readers_of_a_thread_end_when_another_server_deletes_it(shared):
    a, b, c = shared.members
    thread = a.thread()
    a.wait("echo", human("the old one"), thread, stream_resumable=True)
    with httpx.stream("GET", f"{a.url}/threads/{thread}/stream", timeout=60) as stream:
        b.ask("DELETE", f"/threads/{thread}", 204)
        for _ in stream.iter_text():
            pass  # until it ends
    c.ask("POST", "/threads", json={"thread_id": thread})
    c.wait("echo", human("the new one"), thread, stream_resumable=True)
    text = ""
    with httpx.stream("GET", f"{a.url}/threads/{thread}/stream", headers={"Last-Event-ID": "0"}, timeout=60) as stream:
        for piece in stream.iter_text():
            text += piece
            if "event: end" in text:
                break
    assert "the new one" in text and "the old one" not in text


@pytest.fixture
def limited(cluster):
    """Each user may have five runs, whichever servers execute them."""
    return cluster(member=SecuredMember, options=["--limits-runs", "5"])


def create(client: httpx.Client, gate) -> int:
    thread = client.post("/threads", json={}).json()["thread_id"]
    return client.post(f"/threads/{thread}/runs", json=gate.body()).status_code


def test_a_run_keeps_its_slot_when_another_server_takes_it_over(limited, gate):
    alice = [each.as_user("alice") for each in limited.members]
    bob = limited.members[0].as_user("bob")
    statuses = [create(client, gate) for client in alice * 3]
    assert statuses.count(200) == 5 and statuses.count(429) == 4, statuses
    assert create(bob, gate) == 200
    assert limited.sql("SELECT count(*) FROM run_slots") == "6"
    # A run keeps its slot when another server takes it over.
    limited.members[1].kill()
    assert create(alice[0], gate) == 429
    gate.open()
    eventually(lambda: limited.sql("SELECT count(*) FROM run_slots") == "0")
    assert create(alice[2], gate) == 200
