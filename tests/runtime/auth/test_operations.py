"""The effect of handlers on each operation, in one compartment: filters, changed values, refusals."""

import json
import uuid

import pytest
from programs import wait_for


def new_id() -> str:
    return str(uuid.uuid4())


ROUTES = [
    ("GET", "/threads/{t}"),
    ("GET", "/threads/{t}/state"),
    ("GET", "/threads/{t}/history"),
    ("GET", "/threads/{t}/branches"),
    ("GET", "/threads/{t}/timeline"),
    ("GET", "/threads/{t}/agents"),
    ("GET", "/threads/{t}/messages"),
    ("GET", "/threads/{t}/runs/{r}"),
    ("GET", "/threads/{t}/runs/{r}/join"),
    ("GET", "/threads/{t}/runs/{r}/stream"),
    ("GET", "/threads/{t}/stream"),
    ("GET", "/threads/{t}/participants"),
    ("GET", "/threads/{t}/invitations"),
    ("GET", "/runs/{r}/stream"),
    ("PATCH", "/threads/{t}"),
    ("PATCH", "/threads/{t}/branches/{r}"),
    ("DELETE", "/threads/{t}/branches/{r}"),
    ("POST", "/threads/{t}/history"),
    ("POST", "/threads/{t}/state"),
    ("POST", "/threads/{t}/state/checkpoint"),
    ("POST", "/threads/{t}/runs"),
    ("POST", "/threads/{t}/runs/wait"),
    ("POST", "/threads/{t}/runs/stream"),
    ("POST", "/threads/{t}/runs/{r}/cancel"),
    ("POST", "/threads/{t}/runs/crons"),
    ("POST", "/threads/{t}/invitations"),
    ("DELETE", "/threads/{t}/runs/{r}"),
    ("DELETE", "/threads/{t}"),
]
BODIES = {
    "/threads/{t}": {"metadata": {"a": 1}},
    "/threads/{t}/branches/{r}": {"name": "x"},
    "/threads/{t}/state": {"values": {"messages": "no"}},
    "/threads/{t}/state/checkpoint": {"checkpoint": {}},
    "/threads/{t}/runs/crons": {"assistant_id": "echo", "schedule": "0 0 1 1 *"},
}


def body_of(method, path):
    if method in ("GET", "DELETE"):
        return {}
    run = {"assistant_id": "echo", "input": {"messages": "hi"}, "if_not_exists": "create"}
    return {"json": BODIES.get(path, run if path.endswith(("/runs", "/wait", "/stream")) else {})}


@pytest.fixture(scope="module")
def things(shared):
    """A thread of ada's with a finished run."""
    ada = shared.as_user("t-ada")
    thread = ada.thread()
    run = ada("POST", f"/threads/{thread}/runs", json={"assistant_id": "echo", "input": {"messages": "hi"}})["run_id"]
    ada("GET", f"/threads/{thread}/runs/{run}/join")
    return {"t": thread, "r": run}


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part)
def test_a_thread_of_another_user_is_not_found(things, eve, method, path):
    """The same error as for a nonexistent one."""
    options = body_of(method, path)
    theirs = eve.client.request(method, path.format(**things), **options)
    if "/runs" in path and method == "POST" and "{r}" not in path:
        assert theirs.status_code == 404, theirs.text
        return
    none = {"t": new_id(), "r": things["r"] if path.startswith("/threads") else new_id()}
    nothing = eve.client.request(method, path.format(**none), **options)
    assert theirs.status_code == nothing.status_code == 404, (theirs.text, nothing.text)
    assert theirs.text.replace(things["t"], "ID") == nothing.text.replace(none["t"], "ID")


def test_its_owner_still_finds_it(things, ada):
    assert ada("GET", f"/threads/{things['t']}")["status"] == "idle"
    assert len(ada("GET", f"/threads/{things['t']}/runs")) == 1
    assert ada("GET", f"/threads/{things['t']}/state")["values"]["messages"][-1]["content"] == "You said: hi"


def test_an_id_that_is_taken_conflicts(things, bob):
    for if_exists in ("raise", "do_nothing"):
        bob("POST", "/threads", 409, json={"thread_id": things["t"], "if_exists": if_exists})
    bob("POST", f"/threads/{things['t']}/copy", 409)


def test_copies_belong_to_the_copying_user(ada):
    thread = ada.thread(metadata={"a": 1})
    copy = ada("POST", f"/threads/{thread}/copy")
    assert copy["metadata"] == {"a": 1, "owner": "ada"} and copy["thread_id"] != thread


def test_searches_find_the_users_own(things, ada, bob):
    mark = new_id()
    mine, theirs = ada.thread(metadata={"mark": mark}), bob.thread(metadata={"mark": mark})
    for user, id in ((ada, mine), (bob, theirs)):
        search = {"metadata": {"mark": mark}}
        assert [t["thread_id"] for t in user("POST", "/threads/search", json=search)] == [id]
        assert user("POST", "/threads/count", json=search) == 1
        found = {t["metadata"]["owner"] for t in user("POST", "/threads/search", json={"limit": 100})}
        assert found == {user("GET", f"/threads/{id}")["metadata"]["owner"]}
    assert bob("POST", "/threads/search", json={"ids": [mine, theirs]})[0]["thread_id"] == theirs
    found = bob("POST", "/threads/search", json={"metadata": {"owner": "ada"}})
    assert "ada" not in {t["metadata"]["owner"] for t in found}


def test_only_the_handler_sets_the_owner(bob):
    thread = bob("POST", "/threads", json={"metadata": {"owner": "ada"}})
    assert thread["metadata"]["owner"] == "bob"
    changed = bob("PATCH", f"/threads/{thread['thread_id']}", json={"metadata": {"owner": "ada", "b": 2}})
    assert changed["metadata"] == {"owner": "bob", "b": 2}


def test_a_handler_refuses_with_its_own_text(ada, bob):
    thread = bob.thread()
    answer = bob.client.delete(f"/threads/{thread}")
    assert (answer.status_code, answer.json()) == (403, {"detail": "you may not delete threads"})
    thread = ada.thread()
    ada("DELETE", f"/threads/{thread}", 204)
    ada("GET", f"/threads/{thread}", 404)


def test_hidden_threads_are_not_pruned(things, ada, eve):
    mine = eve.thread()
    assert eve("POST", "/threads/prune", json={"thread_ids": [things["t"], mine]}) == {"pruned_count": 1}
    ada("GET", f"/threads/{things['t']}")
    eve("GET", f"/threads/{mine}", 404)


def test_runs_are_refused_and_changed(ada):
    run = {"assistant_id": "echo", "input": {"messages": "forbidden"}}
    ada("POST", "/runs/wait", 403, json=run)
    ada("POST", f"/threads/{ada.thread()}/runs/wait", 403, json=run)
    values = ada("POST", "/runs/wait", json={**run, "input": {"messages": "changed"}})
    assert values["messages"][-1]["content"] == "You said: what the handler says"


def test_each_run_of_a_batch_is_authorized(ada):
    good, bad = ({"assistant_id": "echo", "input": {"messages": text}} for text in ("changed", "forbidden"))
    ada("POST", "/runs/batch", 403, json=[good, bad])
    runs = ada("POST", "/runs/batch", json=[good, {**good, "input": {"messages": "as it is"}}])
    inputs = [run["kwargs"]["input"]["messages"] for run in runs]
    assert inputs == ["what the handler says", "as it is"]


def test_a_thread_created_by_a_run_belongs_to_the_caller(ada, bob):
    thread = new_id()
    run = {"assistant_id": "echo", "input": {"messages": "hi"}, "if_not_exists": "create", "metadata": {"k": 1}}
    ada("POST", f"/threads/{thread}/runs/wait", json=run)
    assert ada("GET", f"/threads/{thread}")["metadata"]["owner"] == "ada"
    bob("POST", f"/threads/{thread}/runs/wait", 404, json=run)


def test_cancelling_many_stops_visible_runs(ada, bob):
    slow = {"assistant_id": "slow", "input": {"messages": "hi"}}
    places = [(user, user.thread()) for user in (ada, bob)]
    runs = [user("POST", f"/threads/{thread}/runs", json=slow)["run_id"] for user, thread in places]
    for (user, thread), run in zip(places, runs):
        wait_for(lambda: user("GET", f"/threads/{thread}/runs/{run}")["status"] == "running", what="the run to begin")
    bob("POST", "/runs/cancel", 404, json={"thread_id": places[0][1], "run_ids": [runs[0]]})
    bob("POST", "/runs/cancel", 204, json={"status": "all"})
    bob("POST", "/runs/cancel", 404, json={"status": "pending"})
    bob("GET", f"/threads/{places[1][1]}/runs/{runs[1]}/join")
    assert bob("GET", f"/threads/{places[1][1]}/runs/{runs[1]}")["status"] == "interrupted"
    assert ada("GET", f"/threads/{places[0][1]}/runs/{runs[0]}")["status"] == "running"
    ada("POST", f"/threads/{places[0][1]}/runs/{runs[0]}/cancel?wait=true")


def test_assistants(ada, bob):
    mine = ada("POST", "/assistants", json={"graph_id": "echo", "name": "mine"})
    id = mine["assistant_id"]
    assert mine["metadata"]["owner"] == "ada"
    names = {a["name"] for a in ada("POST", "/assistants/search", json={})}
    assert {"mine", "echo", "slow"} <= names
    assert "mine" not in {a["name"] for a in bob("POST", "/assistants/search", json={})}
    counts = [user("POST", "/assistants/count", json={}) for user in (ada, bob)]
    assert counts[0] > counts[1] >= 2
    for method, path in (("GET", ""), ("GET", "/schemas"), ("GET", "/graph"), ("POST", "/versions"), ("PATCH", "")):
        bob(method, f"/assistants/{id}{path}", 404, **({} if method == "GET" else {"json": {"name": "theirs"}}))
    bob("DELETE", f"/assistants/{id}", 404)
    for if_exists in ("raise", "do_nothing"):
        again = {"assistant_id": id, "graph_id": "echo", "if_exists": if_exists}
        bob("POST", "/assistants", 409, json=again)
    assert ada("PATCH", f"/assistants/{id}", json={"name": "still mine"})["name"] == "still mine"
    ada("DELETE", f"/assistants/{id}")


def test_deleting_an_assistant_with_its_threads_deletes_only_the_users_own(ada, bob):
    id = ada("POST", "/assistants", json={"graph_id": "echo"})["assistant_id"]
    threads = []
    for user in (ada, bob):
        threads.append(user.thread())
        user("POST", f"/threads/{threads[-1]}/runs/wait", json={"assistant_id": id, "input": {"messages": "hi"}})
    ada("DELETE", f"/assistants/{id}", params={"delete_threads": "true"})
    ada("GET", f"/threads/{threads[0]}", 404)
    bob("GET", f"/threads/{threads[1]}")


def test_crons(ada, bob, eve):
    cron = ada("POST", "/runs/crons", json={"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": {"a": 1}})
    id = cron["cron_id"]
    assert cron["metadata"]["owner"] == "ada" and cron["payload"]["input"] == {"a": 1}
    assert [c["cron_id"] for c in ada("POST", "/runs/crons/search", json={})] == [id]
    assert bob("POST", "/runs/crons/search", json={}) == []
    assert [user("POST", "/runs/crons/count", json={}) for user in (ada, bob)] == [1, 0]
    bob("PATCH", f"/runs/crons/{id}", 404, json={"enabled": False})
    bob("DELETE", f"/runs/crons/{id}", 404)
    assert ada("PATCH", f"/runs/crons/{id}", json={"enabled": False})["enabled"] is False
    # An invalid filter hides everything.
    eve("DELETE", f"/runs/crons/{id}", 500)
    ada("DELETE", f"/runs/crons/{id}", 204)


def test_the_namespaces_of_items_are_the_handlers(ada, bob):
    for user, value in ((ada, 1), (bob, 2)):
        user("PUT", "/store/items", 204, json={"namespace": ["notes"], "key": "k", "value": {"v": value}})
    for user, name, value in ((ada, "ada", 1), (bob, "bob", 2)):
        item = user("GET", "/store/items", params={"namespace": "notes", "key": "k"})
        assert (item["namespace"], item["value"]) == ([name, "notes"], {"v": value})
        found = user("POST", "/store/items/search", json={"namespace_prefix": []})["items"]
        assert [i["namespace"] for i in found] == [[name, "notes"]]
        for listed in (
            user("POST", "/store/namespaces", json={}),
            user("GET", "/store/namespaces", params={"limit": 10}),
        ):
            assert listed == {"namespaces": [[name, "notes"]]}
    bob("DELETE", "/store/items", 204, params={"namespace": "notes", "key": "k"})
    assert bob("GET", "/store/items", params={"namespace": "notes", "key": "k"}) is None
    assert ada("GET", "/store/items", params={"namespace": "notes", "key": "k"})["value"] == {"v": 1}


def test_user_data_reaches_graphs_and_its_secrets_are_not_stored(shared, ada):
    thread = ada.thread()
    run = ada("POST", f"/threads/{thread}/runs", json={"assistant_id": "echo", "input": {"messages": "hi"}})
    ada("GET", f"/threads/{thread}/runs/{run['run_id']}/join")
    user = run["kwargs"]["config"]["configurable"]["langgraph_auth_user"]
    assert (user["identity"], user["team"], user["permissions"]) == ("ada", "weavers", ["threads:delete"])
    assert run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"] == "ada"
    assert "hush-ada" not in json.dumps(run)
    assert b"hush-ada" not in shared.database()
