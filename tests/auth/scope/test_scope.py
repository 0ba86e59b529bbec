"""Every user has a compartment: threads, runs, assistants, crons and items of others do not exist."""

from __future__ import annotations

import re
import uuid

import pytest
from bosses import BOSS, MESSAGES, call, contents
from official import GRAPHS, YEARLY, Team, refused

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
PARROT = {
    "name": "parrot",
    "state": MESSAGES,
    "nodes": {"reply": {"kind": "script", "replies": [{"content": "{{config.voice}}: {{messages[-1].content}}"}]}},
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}


@pytest.fixture(scope="module")
def server(secured_module):
    return secured_module(graphs={**GRAPHS, "boss": BOSS, "parrot": PARROT})


@pytest.fixture
def team(server):
    """team["alice"] is the official client with her token; names are new in each test."""
    with Team(server) as made:
        yield made


# ---- resources of a user ----------------------------------------------------


def test_data_of_another_user_is_not_found(team):
    alice, bob = team["alice"], team["bob"]
    thread = alice.threads.create()["thread_id"]
    alice.runs.wait(thread, "echo", input={"messages": "a secret"})
    run = alice.runs.list(thread)[0]["run_id"]
    checkpoint = alice.threads.get_state(thread)["checkpoint"]["checkpoint_id"]
    assistant = alice.assistants.create("echo", name="mine")["assistant_id"]
    cron = alice.crons.create("echo", schedule=YEARLY)["cron_id"]
    alice.store.put_item(["notes"], "one", {"text": "a secret"})
    for function, *arguments in (
        (bob.threads.get, thread),
        (bob.threads.get_state, thread),
        (bob.threads.get_state, thread, None, checkpoint),
        (bob.threads.get_history, thread),
        (bob.threads.update_state, thread, {"messages": "x"}),
        (bob.threads.update, thread),
        (bob.threads.delete, thread),
        (bob.runs.list, thread),
        (bob.runs.get, thread, run),
        (bob.runs.join, thread, run),
        (bob.runs.cancel, thread, run),
        (bob.runs.delete, thread, run),
        (bob.runs.create, thread, "echo"),
        (bob.runs.wait, None, assistant),
        (bob.assistants.get, assistant),
        (bob.assistants.get_graph, assistant),
        (bob.assistants.get_versions, assistant),
        (bob.assistants.delete, assistant),
        (bob.crons.create, assistant),
        (bob.crons.create_for_thread, thread, "echo"),
        (bob.crons.delete, cron),
    ):
        options = {"metadata": {}} if function == bob.threads.update else {}
        if function in (bob.crons.create, bob.crons.create_for_thread):
            options = {"schedule": YEARLY}
        refused(404, function, *arguments, **options)
    assert bob.threads.search() == [] and bob.threads.count() == 0
    assert bob.crons.search() == [] and bob.crons.count() == 0
    assert bob.assistants.search(metadata={"owner": team.subject("alice")}) == []
    assert bob.store.search_items([])["items"] == [] and bob.store.list_namespaces()["namespaces"] == []
    assert bob.store.get_item(["notes"], "one") is None
    bob.store.delete_item(["notes"], "one")
    team.ask("bob", "POST", "/threads/prune", json={"thread_ids": [thread], "strategy": "delete"})
    team.ask("bob", "POST", "/runs/cancel", 404, json={"thread_id": thread, "run_ids": [run]})
    assert alice.store.get_item(["notes"], "one")["value"] == {"text": "a secret"}
    assert [each["thread_id"] for each in alice.threads.search()] == [thread] and alice.threads.count() == 1
    assert alice.runs.get(thread, run)["status"] == "success" and alice.crons.count() == 1
    assert alice.assistants.get(assistant)["name"] == "mine"


def test_the_same_ids_belong_to_both(team):
    thread, assistant = str(uuid.uuid4()), str(uuid.uuid4())
    for name in ("alice", "bob"):
        client = team[name]
        client.threads.create(thread_id=thread, metadata={"of": name})
        client.assistants.create("parrot", assistant_id=assistant, config={"configurable": {"voice": name}})
        client.runs.wait(thread, assistant, input={"messages": "hi"})
        client.store.put_item(["n"], "k", {"of": name})
        refused(409, client.threads.create, thread_id=thread)
        refused(409, client.assistants.create, "parrot", assistant_id=assistant)
    for name in ("alice", "bob"):
        client = team[name]
        assert client.threads.get(thread)["metadata"]["of"] == name
        assert contents(client.threads.get_state(thread)["values"]) == ["hi", f"{name}: hi"]
        assert len(client.runs.list(thread)) == 1 and client.store.get_item(["n"], "k")["value"] == {"of": name}
    team["alice"].threads.delete(thread)
    team["alice"].assistants.delete(assistant)
    refused(404, team["alice"].threads.get, thread)
    assert contents(team["bob"].threads.get_state(thread)["values"]) == ["hi", "bob: hi"]
    assert contents(team["bob"].runs.wait(thread, assistant, input={"messages": "more"}))[-1] == "bob: more"


def test_an_assistant_of_another_user_is_not_a_tool(team):
    secret = team["alice"].assistants.create("parrot", name="quiet", config={"configurable": {"voice": "alice"}})
    id = secret["assistant_id"]

    def seen(name: str, whom: str) -> tuple:
        """Returns what a user sees whose agent calls an assistant; without ids, which differ."""
        settings = {"configurable": {"assistants": [whom], "calls": [call("quiet")]}}
        answer = team[name].runs.wait(None, "boss", input={"messages": "go"}, config=settings, raise_error=False)
        messages = answer.get("messages") or []
        return answer.get("__error__"), [(each["type"], UUID.sub("ID", str(each["content"]))) for each in messages]

    assert ("tool", "alice: hello") in seen("alice", id)[1]
    assert seen("bob", id) == seen("bob", str(uuid.uuid4()))
    assert "alice" not in str(seen("bob", id)) + str(seen("bob", "quiet"))


# ---- ownership ---------------------------------------------------------------


def test_the_owner_is_the_servers_word(team):
    alice, me, forged = team["alice"], team.subject("alice"), {"owner": "somebody", "kept": 1}
    thread = alice.threads.create(metadata=forged)
    assert thread["metadata"] == {"owner": me, "kept": 1}
    id = thread["thread_id"]
    changed = alice.threads.update(id, metadata={"owner": "somebody", "more": 2})
    assert changed["metadata"] == {"owner": me, "kept": 1, "more": 2}
    assert alice.threads.update(id, metadata={"owner": None})["metadata"]["owner"] == me
    assert alice.threads.create(thread_id=id, if_exists="do_nothing", metadata=forged)["metadata"]["owner"] == me
    assert alice.threads.copy(id)["metadata"]["owner"] == me
    alice.runs.wait(id, "echo", input={"messages": "x"}, metadata={"owner": "somebody"})
    assert alice.threads.get(id)["metadata"]["owner"] == me
    assert alice.runs.list(id)[0]["metadata"]["owner"] == me
    new = str(uuid.uuid4())
    alice.runs.wait(new, "echo", input={"messages": "x"}, metadata={"owner": "somebody"}, if_not_exists="create")
    assert alice.threads.get(new)["metadata"]["owner"] == me
    assert alice.threads.search(metadata={"owner": "somebody"}) == []
    assert len(alice.threads.search(metadata={"owner": me})) == 3 == alice.threads.count(metadata={"owner": me})

    made = alice.assistants.create("echo", metadata=forged)
    assert made["metadata"] == {"owner": me, "kept": 1}
    changed = alice.assistants.update(made["assistant_id"], metadata={"owner": "somebody"})
    assert changed["metadata"]["owner"] == me and changed["version"] == 2
    assert alice.assistants.set_latest(made["assistant_id"], 1)["metadata"]["owner"] == me
    assert {each["metadata"]["owner"] for each in alice.assistants.get_versions(made["assistant_id"])} == {me}
    assert len(alice.assistants.search(metadata={"owner": me})) == 1

    cron = alice.crons.create("echo", schedule=YEARLY, metadata=forged)
    assert cron["metadata"] == {"owner": me, "kept": 1} and cron["payload"]["metadata"]["owner"] == me
    changed = alice.crons.update(cron["cron_id"], metadata={"owner": "somebody"})
    assert changed["metadata"]["owner"] == me
    assert alice.crons.search(metadata={"owner": "somebody"}) == []


def test_graphs_know_the_user(team, server):
    alice, me = team["alice"], team.subject("alice")
    forged = {
        "langgraph_auth_user": {"identity": "root", "permissions": ["admin"]},
        "langgraph_auth_user_id": "root",
        "langgraph_auth_permissions": ["admin"],
        "langgraph_auth_more": "root",
    }
    mine = {"identity": me, "is_authenticated": True, "display_name": me, "permissions": []}
    seen = {"user": mine, "id": me, "permissions": [], "more": None}
    assistant = alice.assistants.create("who", config={"configurable": forged})["assistant_id"]
    thread = alice.threads.create()["thread_id"]
    for which in ("who", assistant):
        values = alice.runs.wait(thread, which, input={}, config={"configurable": forged})
        assert values["seen"][-1] == seen, which
    assert "root" not in str(alice.runs.list(thread)) + str(alice.threads.get_state(thread)["metadata"])
    admin = team.admin.runs.wait(None, "who", input={})["seen"][-1]
    assert admin["permissions"] == ["admin"] == admin["user"]["permissions"]


# ---- assistants of all users ------------------------------------------------


def test_shared_assistants(team, server):
    alice = team["alice"]
    body = {"graph_id": "parrot", "name": "all", "shared": True, "config": {"configurable": {"voice": "everybody"}}}
    team.ask("alice", "POST", "/assistants", 403, json=body)
    shared = team.ask("admin", "POST", "/assistants", json=body)["assistant_id"]
    assert alice.assistants.get(shared)["name"] == "all"
    assert shared in [each["assistant_id"] for each in alice.assistants.search(limit=1000)]
    assert contents(alice.runs.wait(None, shared, input={"messages": "hi"}))[-1] == "everybody: hi"
    path = f"/assistants/{shared}"
    team.ask("alice", "PATCH", path, 403, json={"name": "hers"})
    team.ask("alice", "POST", f"{path}/latest", 403, json={"version": 1})
    team.ask("alice", "DELETE", path, 403)
    # Her own assistant with that id takes precedence, for her.
    alice.assistants.create("parrot", assistant_id=shared, name="hers", config={"configurable": {"voice": "alice"}})
    assert contents(alice.runs.wait(None, shared, input={"messages": "hi"}))[-1] == "alice: hi"
    assert team["bob"].assistants.get(shared)["name"] == "all"
    assert [each["name"] for each in alice.assistants.search(limit=1000) if each["assistant_id"] == shared] == ["hers"]
    alice.assistants.delete(shared)
    assert alice.assistants.get(shared)["name"] == "all"
    assert team.ask("admin", "PATCH", path, json={"name": "ours"})["version"] == 2
    assert alice.assistants.get(shared)["name"] == "ours"
    team.ask("admin", "DELETE", path)
    refused(404, alice.assistants.get, shared)


def test_assistants_of_graphs_cannot_be_changed(team):
    path = f"/assistants/{team['alice'].assistants.get('echo')['assistant_id']}"
    for who in ("alice", "admin"):
        team.ask(who, "PATCH", path, 403, json={"name": "mine"})
        team.ask(who, "DELETE", path, 403)
    assert team["bob"].assistants.get("echo")["name"] == "echo"


# ---- administrators ---------------------------------------------------------


def test_administrators_act_for_others(team, server):
    me = team.subject("alice")
    thread = team["alice"].threads.create()["thread_id"]
    team.ask("admin", "GET", f"/threads/{thread}", 404)
    alice = {"Heddle-Act-For": f"main/{me}"}
    assert team.ask("admin", "GET", f"/threads/{thread}", headers=alice)["metadata"]["owner"] == me
    made = team.ask("admin", "POST", "/threads", json={}, headers=alice)
    assert made["metadata"]["owner"] == me
    assert team["alice"].threads.count() == 2
    body = {"assistant_id": "who", "input": {}}
    seen = team.ask("admin", "POST", "/runs/wait", json=body, headers=alice)["seen"][-1]
    assert seen["id"] == me and seen["permissions"] == []
    team.ask("admin", "GET", f"/threads/{thread}", 404, headers={"Heddle-Act-For": f"other/{me}"})
    # Acting for a user gives only that user's rights.
    team.ask("admin", "GET", "/metrics", 403, headers=alice)
    team.ask("admin", "POST", "/assistants", 403, json={"graph_id": "echo", "shared": True}, headers=alice)
    for wrong in ("", "main", "main/", f"/{me}", "main/" + "x" * 256, b"main/\xff\xfe"):
        team.ask("admin", "GET", f"/threads/{thread}", 422, headers={"Heddle-Act-For": wrong})
    for whom in (f"main/{me}", "nonsense"):
        team.ask("bob", "GET", f"/threads/{thread}", 403, headers={"Heddle-Act-For": whom})


def test_metrics_are_for_administrators(team, server):
    team["alice"].threads.create()
    team.ask("alice", "GET", "/metrics", 403)
    server.ask("GET", "/metrics", 401)
    with server.as_admin() as http:
        text = http.get("/metrics").text
    assert "heddle" in text and team.subject("alice") not in text and "principal" not in text


def test_the_document_states_the_access(server):
    document = server.ask("GET", "/openapi.json")
    assert set(document["components"]["securitySchemes"]) == {"bearer", "apiKey"}
    for (method, path), operation in server.operations().items():
        access = operation["x-heddle-access"]
        assert access in ("public", "user", "viewer", "editor", "owner", "admin"), (method, path)
        assert ("security" in operation) == (access != "public"), (method, path)
        assert not path.startswith("/threads/{") or access in ("viewer", "editor", "owner"), (method, path)


def test_without_credentials_only_names_are_known(server):
    with server.client() as http:
        for method, path in (("GET", f"/threads/{uuid.uuid4()}"), ("POST", "/threads/search"), ("POST", "/runs")):
            answer = http.request(method, path)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
            assert set(answer.json()) == {"detail"}
        assert http.get("/no/such/path").status_code == 404 and http.put("/threads").status_code == 405
        assert http.get("/ok").status_code == http.get("/info").status_code == http.get("/docs").status_code == 200
