"""Requests between servers: secrets reach the holder and no disk, forged requests are refused, and
users stay in their compartments."""

import re
import subprocess

import httpx
import pytest
from cluster import Cluster, Member
from load import eventually
from plain import human, texts
from secured_member import SecuredMember
from talk import Talk

MARK = "zqxjwvkpfgzq"
FORWARDED = "heddle-forwarded"


def keyed(url: str) -> dict:
    """Waits at the gate, then sends the user's key to the counter."""
    header = {"authorization": "Bearer {{config.apiKeys.PAY}}"}
    body = {"job": "keyed", "step": "1"}
    return {
        "name": "keyed",
        "state": {"log": {"reducer": "add", "type": "list"}},
        "nodes": {
            "gate": {"kind": "http", "url": "{{config.gate}}", "timeout_ms": 600000, "update": {"log": ["through"]}},
            "pay": {
                "kind": "http", "method": "POST", "url": url + "/pay", "headers": header, "body": body,
                "update": {"log": ["paid"]},
            },
        },
        "edges": [["__start__", "gate"], ["gate", "pay"], ["pay", "__end__"]],
    }  # fmt: skip


def dump(cluster: Cluster) -> str:
    """Every row of the store, and every log."""
    tables = cluster.sql(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    )
    rows = "".join(cluster.sql(f"SELECT t::text FROM {table} t") for table in tables.split())
    cells = "".join(bytes.fromhex(cell).decode("latin-1") for cell in re.findall(r"\\x((?:[0-9a-f]{2})+)", rows))
    return cells + "".join(each.log.read_text(errors="replace") for each in cluster.members)


def test_secrets_reach_the_holder_and_no_disk(cluster, counter, gate):
    servers = cluster({"keyed": keyed(counter.url)})
    a, b, c = servers.members
    talk = Talk(servers, a)
    agent = a.ask("POST", "/assistants", json={"graph_id": "gated"})["assistant_id"]
    talk.start(a, agent, input={}, config=gate.config)
    eventually(lambda: gate.arrived == 1)
    secrets = {**gate.config["configurable"], "apiKeys": {"PAY": f"{MARK}-key"}, "note": "canary-in-the-open"}
    run = talk.start(b, "keyed", input={"log": []}, config={"configurable": secrets}, durability="sync")
    eventually(lambda: gate.arrived == 2)
    assert talk.holder() == a
    gate.open()
    assert talk.join(c, run)["log"] == ["through", "paid"]
    assert counter.of("keyed")[0].headers["authorization"] == f"Bearer {MARK}-key"
    text = dump(servers)
    assert "canary-in-the-open" in text and MARK not in text
    assert servers.key not in text


def test_a_run_that_lost_its_secrets_with_its_server_names_them(cluster, counter, gate):
    servers = cluster({"keyed": keyed(counter.url)})
    a, b, _ = servers.members
    talk = Talk(servers, a)
    secrets = {**gate.config["configurable"], "apiKeys": {"PAY": f"{MARK}-key"}}
    run = talk.start(a, "keyed", input={"log": []}, config={"configurable": secrets}, durability="sync")
    eventually(lambda: gate.arrived == 1)
    a.kill()
    eventually(lambda: gate.arrived == 2)
    gate.open()
    error = talk.join(b, run)["__error__"]
    assert "apiKeys" in str(error) and MARK not in str(error), error
    assert counter.of("keyed") == []


# ---- forged requests


def recorded(servers: Cluster, talk: Talk, through: Member, holder: Member, run: str) -> tuple[str, bytes]:
    """The header of a forwarded request, and the request."""
    servers.relays.tap(holder.to_self)
    talk.ask(through, "POST", f"/runs/{run}/cancel", 202, params={"wait": "0"}, json={})
    bytes_seen = servers.relays.tapped(holder.to_self)
    at = bytes_seen.find(b"/cancel")
    request = bytes_seen[bytes_seen.rfind(b"POST ", 0, at) :]
    head = request.split(b"\r\n\r\n")[0].decode("latin-1")
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == FORWARDED:
            return value.strip(), request
    raise AssertionError(head)


@pytest.fixture
def held(cluster, gate):
    """A thread that the first of three servers holds, and its run."""
    servers = cluster()
    talk = Talk(servers, servers.members[0])
    run = talk.start(servers.members[0], "gated", input={}, config=gate.config)
    eventually(lambda: gate.arrived)
    return servers, talk, run


@pytest.mark.parametrize("value", ["x", "", "e30.e30", "A" * 300_000, f"{'e30' * 50}.{'A' * 43}"], ids=len)
def test_a_forged_header_is_refused(held, value):
    servers, talk, run = held
    for each in servers.members:
        for method, path in (("GET", talk.path()), ("POST", talk.path(f"/runs/{run}/cancel"))):
            answer = httpx.request(method, each.url + path, headers={FORWARDED: value}, timeout=60)
            assert answer.status_code in (400, 401, 403, 431), (each.name, answer.status_code, answer.text)
    assert talk.run(servers.members[1], run)["status"] == "running"


def test_a_header_of_a_forwarded_request_is_of_no_use_elsewhere(held, gate):
    servers, talk, run = held
    a, b, c = servers.members
    header, _ = recorded(servers, talk, b, a, run)
    eventually(lambda: talk.run(b, run)["status"] == "interrupted")
    other = Talk(servers, a)
    arrived = gate.arrived
    theirs = other.start(a, "gated", input={}, config=gate.config)
    eventually(lambda: gate.arrived > arrived)
    uses = {
        "another path": (a, "POST", other.path(f"/runs/{theirs}/cancel?wait=0"), {}),
        "another query": (a, "POST", talk.path(f"/runs/{run}/cancel?wait=1"), {}),
        "another method": (a, "GET", talk.path(f"/runs/{run}/cancel?wait=0"), None),
        "another body": (a, "POST", talk.path(f"/runs/{run}/cancel?wait=0"), {"a": 1}),
        "another server": (c, "POST", talk.path(f"/runs/{run}/cancel?wait=0"), {}),
    }
    for what, (server, method, path, body) in uses.items():
        answer = httpx.request(method, server.url + path, json=body, headers={FORWARDED: header}, timeout=60)
        assert answer.status_code in (400, 401, 403, 405, 409), (what, answer.status_code, answer.text)
    assert other.run(b, theirs)["status"] == "running"


def test_a_header_is_of_no_use_after_a_restart(held):
    servers, talk, run = held
    a, b, _ = servers.members
    header, _ = recorded(servers, talk, b, a, run)
    a.kill()
    a.revive()
    path = talk.path(f"/runs/{run}/cancel?wait=0")
    answer = httpx.post(a.url + path, json={}, headers={FORWARDED: header}, timeout=60)
    assert answer.status_code in (400, 401, 403, 409), (answer.status_code, answer.text)


def test_a_server_with_another_key_cannot_forward(cluster, gate):
    servers = cluster(size=2)
    a, b = servers.members
    b.stop()
    servers.key = "another key that is long enough to be accepted"
    b.start()
    talk = Talk(servers, a)
    run = talk.start(a, "gated", input={}, config=gate.config)
    eventually(lambda: gate.arrived)
    with b.client() as http:
        answer = http.post(talk.path(f"/runs/{run}/cancel"), params={"wait": "1"})
    assert answer.status_code >= 400, answer.text
    assert talk.run(a, run)["status"] == "running"


# ---- users


@pytest.fixture
def secured(cluster):
    return cluster(member=SecuredMember)


def test_users_see_only_their_own_threads_through_every_server(secured, gate):
    a, b, c = secured.members
    alice = [each.as_user("alice") for each in (a, b, c)]
    bob = [each.as_user("bob") for each in (a, b, c)]
    thread = alice[0].post("/threads", json={}).json()["thread_id"]
    run = alice[0].post(f"/threads/{thread}/runs", json=gate.body()).json()["run_id"]
    eventually(lambda: gate.arrived)
    path = f"/threads/{thread}/runs"
    for theirs in bob:
        for method, rest, body in (
            ("GET", f"/threads/{thread}", None),
            ("GET", f"/threads/{thread}/state", None),
            ("GET", f"/threads/{thread}/stream", None),
            ("GET", f"{path}/{run}/stream", None),
            ("GET", f"{path}/{run}/join", None),
            ("POST", f"{path}/{run}/cancel", {}),
            ("POST", path, gate.body()),
            ("POST", f"/threads/{thread}/state", {"values": {"log": []}, "assistant_id": "gated"}),
            ("DELETE", f"/threads/{thread}", None),
        ):
            answer = theirs.request(method, rest, json=body)
            assert answer.status_code == 404, (method, rest, answer.status_code, answer.text)
        assert theirs.post("/threads/search", json={}).json() == []
    assert [each.get(f"{path}/{run}").json()["status"] for each in alice] == ["running"] * 3
    gate.open()
    assert alice[2].get(f"{path}/{run}/join").json()["log"] == ["before", "through", "after"]
    for each in (*alice, *bob):
        each.close()


def test_a_forwarded_run_belongs_to_its_user(secured, gate):
    a, b, c = secured.members
    with a.as_user("alice") as first, b.as_user("alice") as second, c.as_user("bob") as other:
        thread = first.post("/threads", json={}).json()["thread_id"]
        first.post(f"/threads/{thread}/runs", json=gate.body())
        eventually(lambda: gate.arrived)
        answer = second.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human("hi")})
        assert texts(answer.json()) == ["hi", "You said: hi"], answer.text
        assert len(second.get(f"/threads/{thread}/runs").json()) == 2
        assert other.get(f"/threads/{thread}/runs").status_code == 404
        gate.open()
    eventually(lambda: secured.held() == 0)


@pytest.mark.parametrize("credential", [None, "nonsense"])
def test_requests_without_a_user_are_refused_by_every_server(secured, credential):
    headers = {"Authorization": f"Bearer {credential}"} if credential else {}
    for each in secured.members:
        assert httpx.post(each.url + "/threads", json={}, headers=headers, timeout=60).status_code == 401


def test_an_api_key_works_at_every_server_until_it_is_revoked(secured):
    a, *_ = secured.members

    def key(*arguments: str) -> str:
        done = subprocess.run(
            [a.command()[0], "key", *arguments, "--config", str(a.folder / "config.json"), "--store", a.store],
            env=a.environment(), cwd=a.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    secret = key("create", "--subject", "machine").strip()
    headers = {"X-Api-Key": secret}

    def statuses() -> list[int]:
        urls = [each.url + "/threads/search" for each in secured.members]
        return [httpx.post(url, json={}, headers=headers, timeout=60).status_code for url in urls]

    assert statuses() == [200] * 3
    key("revoke", secret.split("_")[1])
    eventually(lambda: statuses() == [401] * 3)
