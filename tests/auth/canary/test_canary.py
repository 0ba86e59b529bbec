"""Puts secrets in every header, field and claim that can carry one, then searches for them
everywhere."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import urlsplit

from canaries import CONFIGURABLE, HEADERS, JWT, MARK, QUERY, WITNESS, find, forms, must_be_clean, run_body, secret
from kept import dumped, stored
from programs import wait_for
from secured import PRINCIPAL_KEY

ALL_MODES = ["values", "updates", "messages", "messages-tuple", "events", "debug", "tasks", "checkpoints", "custom"]
STATE = {"messages": {"reducer": "messages"}, "seen": {}, "context": {}}
TELL = {
    "kind": "set",
    "emit": [{"config": "{{config}}", "context": "{{context}}"}],
    "update": {"seen": "{{config}}", "context": "{{context}}"},
}
# Each graph puts everything that expressions can see where it is stored, streamed and shown, and
# ends differently.
GRAPHS = {
    "teller": {
        "name": "teller", "state": STATE,
        "nodes": {"tell": TELL, "say": {"kind": "script", "replies": [{"content": "the key is {{config.custom_api_key}}"}]}},
        "edges": [["__start__", "tell"], ["tell", "say"], ["say", "__end__"]],
    },
    "asker": {
        "name": "asker", "state": STATE,
        "nodes": {
            "tell": TELL,
            "ask": {"kind": "interrupt", "ask": [{"config": "{{config}}"}]},
            "break": {"kind": "fail", "error": {"type": "ValueError", "message": "with {{config.apiKeys.OPENAI_API_KEY}}"}},
        },
        "edges": [["__start__", "tell"], ["tell", "ask"], ["ask", "break"], ["break", "__end__"]],
    },
    "sleeper": {
        "name": "sleeper", "state": STATE,
        "nodes": {"tell": TELL, "sleep": {"kind": "sleep", "ms": 3600000}},
        "edges": [["__start__", "tell"], ["tell", "sleep"], ["sleep", "__end__"]],
    },
}  # fmt: skip
# The server's own keys.
ENVIRONMENT = {"OPENAI_API_KEY": secret("server-openai"), "ANTHROPIC_API_KEY": secret("server-anthropic")}


class Journal:
    """All responses to a client, without the secrets that it sent itself."""

    def __init__(self, server, token: str):
        self.server, self.token, self.said = server, token, []
        self.http = server.client(token, headers=HEADERS, params=QUERY)

    def ask(self, method: str, path: str, *, json=None, params=None, headers=None) -> object:
        answer = self.http.request(method, path, json=json, params=params, headers=headers)
        assert answer.status_code < 500, f"{method} {path}: {answer.status_code} {answer.text}"
        self.said.append(f"{method} {path} {answer.status_code}\n{answer.headers}\n{answer.text}")
        return answer

    def text(self) -> str:
        return "\n".join(self.said)


def claims() -> dict:
    """Claims that an issuer may put into a token besides the required ones."""
    return {
        "email": f"{MARK}@example.test", "provider_token": secret("claim"), "session_id": secret("session-claim"),
        "user_metadata": {"api_key": secret("claim-key")}, "nonce": secret("nonce"),
    }  # fmt: skip


def read_everything(journal: Journal, thread: str) -> None:
    for run in journal.ask("GET", f"/threads/{thread}/runs").json():
        base = f"/threads/{thread}/runs/{run['run_id']}"
        journal.ask("GET", base)
        if run["status"] not in ("pending", "running"):
            journal.ask("GET", base + "/join")
            journal.ask("GET", base + "/stream", headers={"Last-Event-ID": "-1"})
    for path in ("", "/state", "/history", "/timeline", "/branches"):
        journal.ask("GET", f"/threads/{thread}{path}")
    journal.ask("GET", f"/threads/{thread}/state", params={"subgraphs": "true"})
    journal.ask("POST", f"/threads/{thread}/history", json={"limit": 1000})
    for what in ("threads", "assistants", "runs/crons", "store/items"):
        journal.ask("POST", f"/{what}/search", json={"namespace_prefix": []} if what == "store/items" else {})
    for path in ("/info", "/metrics", "/openapi.json", "/ok"):
        journal.ask("GET", path)


def refused_requests(thread: str, assistant: str) -> list[tuple[str, str, object]]:
    """Requests that would store a secret, or are otherwise invalid."""
    config = {"configurable": CONFIGURABLE}
    cron = {"assistant_id": "teller", "schedule": "0 0 1 1 *", "input": {}}
    return [
        ("POST", "/assistants", {"graph_id": "teller", "config": config}),
        ("POST", "/assistants", {"graph_id": "teller", "context": {"password": secret("assistant")}}),
        ("POST", "/assistants", {"graph_id": "teller", "metadata": {"api_key": secret("assistant")}}),
        ("POST", "/assistants", {"graph_id": "teller", "config": {"configurable": {"note": JWT}}}),
        ("PATCH", f"/assistants/{assistant}", {"config": config}),
        ("PATCH", f"/assistants/{assistant}", {"metadata": {"access_token": secret("assistant")}}),
        ("POST", "/threads", {"metadata": {"access_token": secret("thread")}}),
        ("PATCH", f"/threads/{thread}", {"metadata": {"access_token": secret("thread")}}),
        ("POST", "/runs/crons", cron | {"config": config}),
        ("POST", "/runs/crons", cron | {"metadata": {"secret": secret("cron")}}),
        ("POST", "/runs/crons", cron | {"webhook": f"https://user:{secret('cron')}@hooks.test/"}),
        ("POST", "/runs/crons", cron | {"webhook": f"https://hooks.test/?token={secret('cron')}"}),
        ("POST", f"/threads/{thread}/runs/crons", cron | {"context": {"token": secret("cron")}}),
        ("POST", f"/threads/{thread}/runs", run_body("teller", webhook=f"https://user:{secret('hook')}@hooks.test/")),
        (
            "POST",
            f"/threads/{thread}/runs",
            run_body("teller", webhook=f"https://hooks.test/?api_key={secret('hook')}"),
        ),
        ("POST", f"/threads/{thread}/runs/wait", run_body("teller", webhook=f"https://hooks.test/x?sig={JWT}")),
    ]


def wrong_requests(thread: str) -> list[tuple[str, str, object]]:
    """Invalid requests with secrets; the errors must not repeat them."""
    return [
        ("POST", f"/threads/{thread}/runs", run_body("nobody")),
        ("POST", f"/threads/{thread}/runs", run_body("teller", stream_mode=7)),
        ("POST", f"/threads/{thread}/runs", run_body("teller", multitask_strategy=secret("word"))),
        ("POST", f"/threads/{thread}/runs", run_body("teller", config=secret("config"))),
        ("POST", f"/threads/{thread}/runs", run_body("teller", checkpoint_id=7)),
        ("POST", f"/threads/{thread}/runs", run_body("teller", webhook=secret("no url"))),
        ("GET", "/threads/" + secret("path"), None),
        ("GET", f"/threads/{thread}/runs/" + secret("path"), None),
        ("GET", "/nowhere/" + secret("path"), None),
    ]


def crash_in_the_middle(server, journal: Journal, thread: str) -> None:
    """One run with secrets is running, one is pending: after kill -9 both continue without them."""
    run = journal.ask("POST", f"/threads/{thread}/runs", json=run_body("sleeper", input={"messages": "x"})).json()[
        "run_id"
    ]

    def is_asleep() -> bool:
        state = journal.http.get(f"/threads/{thread}/state")
        return state.status_code == 200 and "sleep" in state.json().get("next", [])

    wait_for(is_asleep, what="a run at work")
    later = run_body("teller", input={"messages": "x"}, after_seconds=3600)
    waiting = journal.ask("POST", f"/threads/{thread}/runs", json=later).json()["run_id"]
    server.kill()
    server.restart()
    for each in (run, waiting):
        answer = journal.ask("POST", f"/threads/{thread}/runs/{each}/cancel", params={"wait": "1"})
        assert answer.status_code in (200, 202, 204), answer.text


def runs_of_every_end(server, journal: Journal) -> list[str]:
    """Threads with runs that succeeded, were interrupted, failed, were cancelled, and one that saw
    a crash."""
    good, asked, cancelled, crashed = (
        journal.ask("POST", "/threads", json={"metadata": {"note": WITNESS}}).json()["thread_id"] for _ in range(4)
    )
    body = run_body("teller", input={"messages": f"hello {WITNESS}"}, stream_mode=ALL_MODES, stream_subgraphs=True)
    assert journal.ask("POST", f"/threads/{good}/runs/stream", json=body).status_code == 200
    assert journal.ask("POST", "/runs/wait", json=body | {"on_completion": "keep"}).status_code == 200
    body = run_body("asker", input={"messages": "hello"}, stream_mode=ALL_MODES)
    assert "__interrupt__" in journal.ask("POST", f"/threads/{asked}/runs/stream", json=body).text
    body = run_body("asker", command={"resume": "go on"}, stream_mode=ALL_MODES)
    assert "ValueError" in journal.ask("POST", f"/threads/{asked}/runs/stream", json=body).text
    run = journal.ask("POST", f"/threads/{cancelled}/runs", json=run_body("sleeper", input={"messages": "x"})).json()
    journal.ask("POST", f"/threads/{cancelled}/runs/{run['run_id']}/cancel", params={"wait": "1"})
    crash_in_the_middle(server, journal, crashed)
    return [good, asked, cancelled, crashed]


def kept(server, store: str) -> bytes:
    """Returns everything in the database; the server must not be running."""
    return dumped(server.store) if store == "postgres" else server.database() + stored(server)


def exported(server, *what: str) -> str:
    of_whom = ("--subject", "main/alice", "--store", server.store, "--config", str(server.config_file))
    done = server.tool("export", *what, *of_whom)
    return done.stdout + done.stderr


def test_the_search_finds_the_canaries():
    for form, data in forms().items():
        assert find(b"before" + data + b"after"), form
    for pad in range(3):
        assert find(base64.b64encode(b"x" * pad + b"Basic user:" + MARK.encode() + b" and more")), pad
    assert not find(f"{WITNESS} nothing".encode())


def test_nothing_lands(secured, store):
    config = {"log": {"level": "debug"}, "audit": {"file": "audit.log"}, "record": True}
    server = secured(store=store, graphs=GRAPHS, config=config, env=ENVIRONMENT)
    token = server.user("alice", **claims())
    parts = token.split(".")
    journal = Journal(server, token)
    threads = runs_of_every_end(server, journal)
    assistant = journal.ask("POST", "/assistants", json={"graph_id": "teller", "name": WITNESS}).json()["assistant_id"]
    for method, path, body in refused_requests(threads[0], assistant):
        answer = journal.ask(method, path, json=body)
        assert answer.status_code == 422, f"{method} {path} {json.dumps(body)[:200]}: {answer.text}"
    # The server may echo a client's own words to it, but stores them nowhere.
    wrong = Journal(server, token)
    for method, path, body in wrong_requests(threads[0]):
        assert 400 <= wrong.ask(method, path, json=body).status_code < 500
    for thread in threads:
        read_everything(journal, thread)
    for name, bad in {"token": token[:-8] + "A" * 8, "key": secret("api-key"), "shape": JWT}.items():
        with server.client(bad, headers=HEADERS, params=QUERY) as http:
            answer = http.get("/threads/" + threads[0])
            assert answer.status_code == 401, name
            journal.said.append(str(answer.headers) + answer.text)
    must_be_clean("the answers", journal.text(), token, *parts[1:])
    journal.http.close()
    wrong.http.close()
    server.stop()

    secrets = (token, *parts[1:], PRINCIPAL_KEY, server.main.key)
    password = urlsplit(server.store).password
    must_be_clean("the log", server.log.read_bytes(), *secrets, *([password] if password else []), has_witness=False)
    must_be_clean("the audit log", (server.folder / "audit.log").read_bytes(), *secrets, has_witness=False)
    must_be_clean("the database", kept(server, store), *secrets)
    words = b"the key is heddle:secret:custom_api_key"
    assert words in kept(server, store), "what is compressed was looked at, too"
    must_be_clean("what is exported", exported(server, "--all"), *secrets)
    for thread in threads:
        must_be_clean("an exported thread", exported(server, thread), *secrets)
    found = server.tool("doctor", "--secrets", server.store, status=None)
    assert found.returncode == 0, found.stdout + found.stderr
    must_be_clean("what the doctor says", found.stdout + found.stderr, *secrets, has_witness=False)


def test_a_run_that_takes_too_long(secured, store):
    server = secured(store=store, graphs=GRAPHS, config={"run_timeout": 1, "log": {"level": "debug"}})
    journal = Journal(server, server.user("alice", **claims()))
    thread = journal.ask("POST", "/threads", json={"metadata": {"note": WITNESS}}).json()["thread_id"]
    answer = journal.ask("POST", f"/threads/{thread}/runs/wait", json=run_body("sleeper", input={"messages": "x"}))
    assert "__error__" in answer.json(), answer.text
    read_everything(journal, thread)
    must_be_clean("the answers", journal.text())
    journal.http.close()
    server.stop()
    must_be_clean("the log", server.log.read_bytes(), has_witness=False)
    must_be_clean("the database", kept(server, store))


def test_keys_in_model_output(secured, scripted):
    """Providers repeat a wrong key in their error message; the server stores none of it."""

    def complain(peer, request) -> None:
        given = request.headers.get("authorization", "")
        message = {"error": {"message": f"Incorrect API key provided: {given}", "type": "invalid_request_error"}}
        peer.answer(401, message, {"x-echo": given})

    model = scripted(complain)
    server = secured(config={"log": {"level": "debug"}, "outgoing": {"private": "allow"}})
    configurable = {"base_url": model.url + "/v1", "custom_model_name": "m", "custom_api_key": secret("wrong-key")}
    journal = Journal(server, server.user("alice"))
    thread = journal.ask("POST", "/threads", json={"metadata": {"note": WITNESS}}).json()["thread_id"]
    body = {"assistant_id": "agent", "input": {"messages": "hello"}, "config": {"configurable": configurable}}
    answer = journal.ask("POST", f"/threads/{thread}/runs/wait", json=body)
    assert "__error__" in answer.json(), answer.text
    assert model.requests and MARK in model.requests[0].headers["authorization"], "the model was asked with the key"
    read_everything(journal, thread)
    must_be_clean("the answers", journal.text())
    journal.http.close()
    server.stop()
    must_be_clean("the log", server.log.read_bytes(), has_witness=False)
    must_be_clean("the database", kept(server, "sqlite"))


def test_api_keys_and_invitations(secured, store):
    """Both are shown once, when they are created; only a hash is stored."""
    server = secured(store=store, graphs=GRAPHS, config={"log": {"level": "debug"}, "audit": {"file": "audit.log"}})
    said = server.tool("key", "create", "--subject", WITNESS, "--store", server.store).stdout
    key, id_of_key, rest_of_key = re.search(r"hdk_([\w-]{16})_([\w-]{43})", said).group(0, 1, 2)
    with server.client(headers={"x-api-key": key}) as machine, server.as_user("bob") as bob:
        thread = machine.post("/threads", json={"metadata": {"note": WITNESS}}).json()["thread_id"]
        body = run_body("teller", input={"messages": "hello"})
        assert machine.post(f"/threads/{thread}/runs/wait", json=body).status_code == 200
        invitations = [
            machine.post(f"/threads/{thread}/invitations", json={"role": role}).json()["token"]
            for role in ("viewer", "editor")
        ]
        assert bob.post("/invitations/accept", json={"token": invitations[0]}).status_code == 200
        told = [
            machine.get(f"/threads/{thread}{path}").text
            for path in ("", "/invitations", "/participants", "/state", "/runs")
        ]
    with server.client(key) as machine:  # also as a bearer token
        told.append(machine.get(f"/threads/{thread}").text)
    told.append(server.tool("key", "list", "--store", server.store).stdout)
    assert id_of_key in told[-1], "the id of a key is no secret"
    secrets = [key, rest_of_key, *invitations]
    must_be_clean("the answers", "\n".join(told), *secrets)
    server.stop()
    must_be_clean("the log", server.log.read_bytes(), *secrets, has_witness=False)
    must_be_clean("the audit log", (server.folder / "audit.log").read_bytes(), *secrets)
    must_be_clean("the database", kept(server, store), *secrets)
    found = server.tool("doctor", "--secrets", server.store, status=None)
    assert found.returncode == 0, found.stdout + found.stderr


def test_webhooks_contain_no_secrets(secured, scripted):
    hook = scripted(lambda peer, request: peer.answer(200, {}))
    server = secured(graphs=GRAPHS, config={"outgoing": {"private": "allow"}, "webhooks": {"allow_loopback": True}})
    journal = Journal(server, server.user("alice", **claims()))
    thread = journal.ask("POST", "/threads", json={"metadata": {"note": WITNESS}}).json()["thread_id"]
    for assistant in ("teller", "asker"):
        body = run_body(assistant, input={"messages": f"hello {WITNESS}"}, webhook=hook.url + "/hook")
        assert journal.ask("POST", f"/threads/{thread}/runs/wait", json=body).status_code == 200
    wait_for(lambda: len(hook.requests) == 2, what="two calls of the webhook")
    journal.http.close()
    for request in hook.requests:
        must_be_clean("a webhook's request", json.dumps(request.headers).encode() + request.body, journal.token)
