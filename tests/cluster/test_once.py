"""What must happen once, however many servers there are: crons, webhooks, sweeps."""

import time

from listener import Listener, closed_port
from load import eventually
from plain import human
from secured_member import SecuredMember
from talk import Talk

EVERY_SECOND = "* * * * * *"


def fired(server, thread: str) -> list[dict]:
    return server.ask("GET", f"/threads/{thread}/runs", params={"limit": 1000})


def test_crons_fire_once(cluster):
    servers = cluster()
    a, b, c = servers.members
    thread = a.thread()
    begun = time.monotonic()
    body = {"assistant_id": "nap", "schedule": EVERY_SECOND, "input": {"ms": 0}}
    cron = b.ask("POST", f"/threads/{thread}/runs/crons", json=body)["cron_id"]
    eventually(lambda: len(fired(c, thread)) >= 4)
    leader = servers.leader()
    leader.kill()
    before = len(fired(servers.up()[0], thread))
    eventually(lambda: len(fired(servers.up()[0], thread)) >= before + 3)
    other = servers.up()[0]
    other.ask("DELETE", f"/runs/crons/{cron}", 204)
    runs = fired(other, thread)
    assert len(runs) <= time.monotonic() - begun + 2, "a second has fired twice"
    eventually(lambda: all(run["status"] == "success" for run in fired(other, thread)))
    count = len(fired(other, thread))
    assert other.state(thread)["values"]["log"] == ["before", "slept", "after"] * count


def test_each_run_has_its_webhook_once(shared):
    with Listener() as listener:
        runs = []
        for number in range(12):
            member = shared.members[number % 3]
            body = {"assistant_id": "echo", "input": human("hi"), "webhook": f"{listener.url}/{number}"}
            runs.append(member.ask("POST", f"/threads/{member.thread()}/runs", json=body)["run_id"])
        got = [listener.next()["body"]["run_id"] for _ in runs]
        assert sorted(got) == sorted(runs)
        shared.comes_to_rest()
        eventually(lambda: shared.sql("SELECT count(*) FROM outbox") == "0")
        assert listener.received.empty()


def test_the_webhook_of_a_server_that_died_is_delivered_by_another(cluster):
    servers = cluster()
    a, *_ = servers.members
    with closed_port() as port:
        talk = Talk(servers, a)
        run = talk.start(a, "echo", input=human("hi"), webhook=f"http://127.0.0.1:{port}/done")
        talk.join(a, run)
        a.kill()
    with Listener(port=port) as listener:
        assert listener.next(120)["body"]["run_id"] == run
        eventually(lambda: servers.sql("SELECT count(*) FROM outbox") == "0")
        assert listener.received.empty()


def test_a_run_that_is_given_up_sends_its_webhook_once(cluster, gate):
    """Its server has died three times in the same step, and each time another one has taken over."""
    servers = cluster()
    with Listener() as listener:
        talk = Talk(servers, servers.members[0])
        run = talk.start(servers.members[0], "gated", **gate.body(webhook=f"{listener.url}/end", durability="sync"))
        for losses in range(1, 4):
            eventually(lambda: gate.arrived == losses, 60)
            dead = talk.is_held()
            dead.kill()
            eventually(lambda: talk.holder() != dead, 60)
            dead.revive()
        got = listener.next(60)["body"]
        assert (got["run_id"], got["status"]) == (run, "error")
        eventually(lambda: servers.sql("SELECT count(*) FROM outbox") == "0")
        assert listener.received.empty()


def test_expired_threads_are_removed_whoever_leads(cluster):
    servers = cluster()
    servers.leader().kill()
    other = servers.up()[0]
    thread = other.thread(ttl={"ttl": 0.01, "strategy": "delete"})
    eventually(lambda: servers.sql(f"SELECT count(*) FROM thread_info WHERE thread_id = '{thread}'") == "0")


def test_the_limit_of_runs_counts_those_of_all_servers(cluster, gate):
    servers = cluster(member=SecuredMember, config={"limits": {"runs": 5}})
    statuses = []
    for number in range(9):
        with servers.members[number % 3].as_user("alice") as http:
            thread = http.post("/threads", json={}).json()["thread_id"]
            statuses.append(http.post(f"/threads/{thread}/runs", json=gate.body()).status_code)
    assert statuses == [200] * 5 + [429] * 4
    gate.open()
    eventually(lambda: servers.held() == 0)
    with servers.members[0].as_user("alice") as http:
        answer = http.post("/runs/wait", json={"assistant_id": "echo", "input": human("again")})
        assert answer.status_code == 200, answer.text
