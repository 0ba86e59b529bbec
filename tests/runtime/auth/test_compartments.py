"""Compartments, caches, and other credentials beside the project's own code."""

import contextlib
import json
import re
import subprocess
import threading

import httpx
import pytest
from programs import wait_for
from server import binary


def test_each_identity_has_a_compartment(guarded, language):
    """The same id for two users: neither can detect the other's, independent of the handlers."""
    server = guarded(language)
    ada, bob = server.as_user("t-ada"), server.as_user("t-bob")
    thread = ada.thread()
    assert bob("POST", "/threads", json={"thread_id": thread})["metadata"]["owner"] == "bob"
    assert ada("GET", f"/threads/{thread}")["metadata"]["owner"] == "ada"
    ada("PUT", "/store/items", 204, json={"namespace": ["n"], "key": "k", "value": {}})
    assert bob("POST", "/store/items/search", json={})["items"] == []


def test_the_cache_limits_calls_of_the_code(guarded):
    server = guarded("python", {"cache": {"cache_keys": ["Authorization"], "ttl_seconds": 3600, "max_size": 1}})
    ada, bob = server.as_user("t-ada"), server.as_user("t-bob")
    for _ in range(3):
        ada.thread()
    assert len(server.asked()) == 1
    # Another credential needs another call, and the cache holds one result.
    bob.thread()
    ada.thread()
    assert len(server.asked()) == 3
    # A request without any of the headers is not cached.
    for _ in range(2):
        server.as_user(None)("POST", "/threads", 401, json={})
    assert len(server.asked()) == 5


def test_without_a_cache_each_request_calls_the_code(guarded):
    server = guarded("python")
    ada = server.as_user("t-ada")
    for _ in range(3):
        ada.thread()
    assert server.asked() == ["POST /threads"] * 3


def test_streams_end_when_their_credential_is_withdrawn(guarded, language):
    server = guarded(language)
    ada = server.as_user("t-ada")
    thread = ada.thread()
    is_open = threading.Event()

    def listen():
        with ada.client.stream("GET", f"/threads/{thread}/stream") as answer, contextlib.suppress(httpx.ReadError):
            is_open.set()
            for _ in answer.iter_raw():
                pass

    listener = threading.Thread(target=listen)
    listener.start()
    assert is_open.wait(60)
    server.forget("t-ada")
    with httpx.Client(base_url=server.url, headers=ada.client.headers, timeout=120) as other:
        assert other.get(f"/threads/{thread}").status_code == 401
    listener.join(60)
    assert not listener.is_alive()


def test_heddles_own_keys_are_not_sent_to_the_code(guarded):
    """Handlers also run for users authenticated by a key."""
    server = guarded("python")
    made = subprocess.run(
        [str(binary()), "key", "create", "--subject", "nightly", "--store", f"sqlite:{server.folder}/heddle.db"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    key = re.search(r"hdk_[\w-]+", made.stdout + made.stderr)[0]
    with httpx.Client(base_url=server.url, headers={"x-api-key": key}, timeout=120) as client:
        thread = client.post("/threads", json={}).json()
        assert thread["metadata"] == {"owner": "nightly"}
        answer = client.delete(f"/threads/{thread['thread_id']}")
    assert (answer.status_code, answer.json()) == (403, {"detail": "you may not delete threads"})
    assert server.asked() == []


def test_code_that_fails_to_load_rejects_requests(guarded):
    server = guarded("python", files={"auth.py": "auth = None\nraise RuntimeError('not today')\n"})
    wait_for(lambda: "not today" in server.log.read_text(), what="the log")  # until then: 503
    for token in ("t-ada", None):
        answer = server.as_user(token).client.post("/threads", json={})
        assert (answer.status_code, "not today" in answer.text) == (500, False)
    server.as_user(None)("GET", "/ok")


def test_a_worker_that_dies_is_waited_for(guarded):
    server = guarded("python")
    ada = server.as_user("t-ada")
    thread = ada.thread()
    for pid in server.workers():
        subprocess.run(["kill", "-9", str(pid)], check=True)
    wait_for(lambda: ada.client.get(f"/threads/{thread}").status_code == 200, what="a worker")


@pytest.mark.parametrize(
    ("auth", "text"),
    [
        ({"compartments": "none"}, "auth.compartments"),
        ({"cache": {"ttl": 1}}, "auth.cache"),
        ({"cache": -1}, "auth.cache"),
        ({"path": 1}, "auth.path"),
    ],
)
def test_mistakes_in_the_configuration_are_named(tmp_path, auth, text):
    file = tmp_path / "langgraph.json"
    file.write_text(json.dumps({"graphs": {}, "auth": {"path": "./auth.py:auth", **auth}}))
    done = subprocess.run(
        [str(binary()), "serve", "--config", str(file), "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert text in done.stderr


STORE = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> str:
    return authorization or "nobody"


@auth.on.store
async def items(ctx, value):
    return {"team": {"$contains": ctx.user.identity}}
"""


def test_items_excluded_by_a_filter_are_not_found(guarded):
    server = guarded("python", {"compartments": "shared"}, files={"auth.py": STORE})

    def ask(who, method, path, status=200, **options):
        return server.as_user(None, headers={"authorization": who})(method, path, status, **options)

    for key, team in (("both", ["ada", "bob"]), ("mine", ["ada"])):
        item = {"namespace": ["notes", key], "key": key, "value": {"team": team}}
        ask("ada", "PUT", "/store/items", 204, json=item)
    # A copy needs read access to its source, and cannot overwrite a hidden target.
    ask("bob", "PUT", "/store/items", 403, json={"namespace": ["n"], "key": "k", "value": {"team": ["ada"]}})
    ask("bob", "PUT", "/store/items", 403, json={**item, "value": {"team": ["bob"]}})
    for who, keys in (("ada", {"both", "mine"}), ("bob", {"both"}), ("eve", set())):
        found = ask(who, "POST", "/store/items/search", json={})["items"]
        assert {i["key"] for i in found} == keys
        listed = ask(who, "POST", "/store/namespaces", json={"prefix": ["notes"]})["namespaces"]
        assert {ns[1] for ns in listed} == keys
        for key in ("both", "mine"):
            item = ask(who, "GET", "/store/items", params={"namespace": f"notes.{key}", "key": key})
            assert (item is not None) == (key in keys)
    ask("bob", "DELETE", "/store/items", 204, params={"namespace": "notes.mine", "key": "mine"})
    assert ask("ada", "GET", "/store/items", params={"namespace": "notes.mine", "key": "mine"})
    # No other handler exists: one compartment, and nothing is hidden.
    thread = ask("ada", "POST", "/threads", json={})["thread_id"]
    assert ask("bob", "GET", f"/threads/{thread}")["metadata"]["owner"] == "ada"


GRAPH = """
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    seen: dict


def look(state, config):
    user = config["configurable"]["langgraph_auth_user"]
    is_known = user["api_key"] == "hush-" + user["identity"]
    return {"seen": {"team": user["team"], "knows": is_known, "id": config["configurable"]["user_id"]}}


graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
"""


def test_graphs_receive_their_user_and_its_secrets_are_not_stored(guarded):
    server = guarded("python", files={"look.py": GRAPH}, graphs={"look": "./look.py:graph"})
    ada = server.as_user("t-ada")
    thread = ada.thread()
    values = ada("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": "look", "input": {"seen": {}}})
    assert values == {"seen": {"team": "weavers", "knows": True, "id": "ada"}}
    assert b"hush-ada" not in server.database()
    assert "hush-ada" not in server.tail(1000)


APP = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def me(request):
    return JSONResponse({"identity": request.user.identity, "team": request.user["team"]})


app = Starlette(routes=[Route("/me", me)])
"""


def test_an_application_has_the_same_authentication(guarded):
    http = {"app": "./app.py:app", "enable_custom_route_auth": True}
    server = guarded("python", files={"app.py": APP}, config={"http": http})
    server.as_user("t-nobody")("GET", "/me", 401)
    assert server.as_user("t-bob")("GET", "/me") == {"identity": "bob", "team": "spinners"}
