"""A2A agents as tools, with the official SDK: its 1.x series (protocol 1.0, and 0.3 compatibility)
and its 0.3 series."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx
import pytest
from programs import Heddle, Process, wait_for

TOKEN = "a2a-token-4711"
# A scripted model: it makes the calls of the configuration, then replies "heard".
BOSS = {
    "name": "boss",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "model": {
            "kind": "script",
            "replies": [
                {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "heard"},
                {"content": "", "tool_calls": "{{config.calls}}"},
            ],
        },
        "tools": {"kind": "tools", "sources": [{"a2a": "{{config.a2a}}"}], "tool_timeout_ms": 120000},
    },
    "edges": [
        ["__start__", "model"],
        {
            "from": "model",
            "fanout": {"over": "{{messages[-1].tool_calls}}", "as": "call", "to": "tools", "arg": {"call": "{{call}}"}},
        },
        ["tools", "model"],
    ],
}
# The same with a short timeout, which is long enough to learn the task's id.
HASTY = {
    **BOSS,
    "name": "hasty",
    "nodes": {**BOSS["nodes"], "tools": {**BOSS["nodes"]["tools"], "tool_timeout_ms": 5000}},
}
# Path of the agent, and the protocol in the configuration.
PEERS = [
    ("rpc", None),
    ("rpc-plain", None),
    ("rest", None),
    ("rest-plain", None),
    ("legacy", "0.3"),
    ("old", None),
    ("old-plain", None),
]
STREAMS = [peer for peer in PEERS if not peer[0].endswith("plain")]


def started(thing):
    try:
        yield thing.start()
    finally:
        thing.stop()
        getattr(thing, "remove", thing.stop)()


@pytest.fixture(scope="module")
def server():
    yield from started(Heddle(graphs={"boss": BOSS, "hasty": HASTY}))


@pytest.fixture(scope="module")
def node_path(node_folder) -> Path:
    return node_folder / "a2a" / "agent.mjs"


@pytest.fixture(scope="module")
def new(node_path):
    yield from started(Process(["node", str(node_path), "new"], ready=r"ready (\S+)", cwd=node_path.parent))


@pytest.fixture(scope="module")
def old(node_path):
    yield from started(Process(["node", str(node_path), "old"], ready=r"ready (\S+)", cwd=node_path.parent))


@pytest.fixture
def base(new, old):
    """base(path): the address of that agent."""
    return lambda path: (old if path.startswith("old") else new).found[1]


@pytest.fixture
def agent(base):
    """agent(peer): its entry in a run's configuration, as the tool `friend`."""

    def configure(peer, **more) -> dict:
        path, protocol = peer
        entry = {"name": "friend", "url": f"{base(path)}/{path}", **more}
        return entry | ({"protocol": protocol} if protocol else {})

    return configure


def calls(*messages: str, name: str = "friend") -> list[dict]:
    return [{"name": name, "args": {"message": text}, "id": f"call_{i}"} for i, text in enumerate(messages)]


def run(server, agents, *messages, thread=None, **body):
    configurable = {"a2a": {"agents": agents}, "calls": calls(*messages)}
    thread = thread or server.thread()
    return server.wait("boss", {"messages": "go"}, thread=thread, configurable=configurable, **body)


def tool_messages(values) -> list[dict]:
    return [m for m in values["messages"] if m["type"] == "tool"]


def only(values) -> dict:
    (message,) = tool_messages(values)
    return message


def seen(url: str) -> dict:
    return httpx.get(url + "/seen", timeout=60).json()


# ---- every kind of response, in every protocol version and binding -------------


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer[0])
def test_a_message_is_the_content(server, agent, peer):
    message = only(run(server, [agent(peer)], "hello there"))
    assert (message["content"], message["name"], message["status"]) == ("You said: hello there", "friend", "success")
    assert not message.get("artifact")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer[0])
def test_a_task_returns_text_data_and_artifacts(server, agent, peer):
    message = only(run(server, [agent(peer)], "artifact"))
    assert message["content"] == 'All done.\nDo it.\n{"steps":[1,2]}'
    assert message["artifact"]["state"] == "completed"
    assert message["artifact"]["task_id"] and message["artifact"]["context_id"]
    (artifact,) = message["artifact"]["artifacts"]
    assert artifact["name"] == "the plan"
    assert artifact["parts"] == [{"type": "text", "text": "Do it."}, {"type": "data", "data": {"steps": [1, 2]}}]


@pytest.mark.parametrize("peer", STREAMS, ids=lambda peer: peer[0])
def test_progress_is_streamed(server, agent, peer):
    configurable = {"a2a": [agent(peer)], "calls": calls("stream")}
    events = server.stream(
        "boss", {"messages": "go"}, thread=server.thread(), configurable=configurable, stream_mode=["custom", "values"]
    )
    told = [data for name, data, _ in events if name == "custom" and data["type"] == "a2a_progress"]
    assert all(each["agent"] == "friend" and each["tool_call_id"] == "call_0" and each["task_id"] for each in told)
    assert ("working", "thinking") in [(each["state"], each.get("text")) for each in told]
    assert [each["text"] for each in told if each.get("artifact") == "the poem"] == ["one ", "two ", "three"]
    message = only([data for name, data, _ in events if name == "values"][-1])
    assert message["content"] == "one two three"


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer[0])
def test_required_input_interrupts_and_is_answered(server, agent, peer):
    thread = server.thread()
    configurable = {"a2a": [agent(peer)], "calls": calls("ask")}
    values = server.wait("boss", {"messages": "go"}, thread=thread, configurable=configurable)
    (asked,) = values["__interrupt__"]
    question = asked["value"]
    assert (question["type"], question["agent"], question["message"]) == ("a2a_input_required", "friend", "Which city?")
    task = question["task_id"]
    assert task and question["context_id"] and question["state"] == "input-required"
    # The agent does not accept this reply: it requests input again, in the same task.
    values = server.wait("boss", thread=thread, configurable=configurable, command={"resume": "again"})
    (asked,) = values["__interrupt__"]
    assert (asked["value"]["message"], asked["value"]["task_id"]) == ("Which country?", task)
    values = server.wait("boss", thread=thread, configurable=configurable, command={"resume": "Rome"})
    message = only(values)
    assert message["content"] == "You chose: Rome"
    assert message["artifact"]["task_id"] == task


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer[0])
@pytest.mark.parametrize(("word", "says"), [("fail", "no fuel"), ("reject", "not mine")])
def test_rejected_and_failed_tasks_are_errors(server, agent, peer, word, says):
    message = only(run(server, [agent(peer)], word))
    assert message["status"] == "error"
    assert says in message["content"] and "friend" in message["content"]


@pytest.mark.parametrize("peer", STREAMS, ids=lambda peer: peer[0])
def test_a_cancel_reaches_the_agent(server, agent, base, peer):
    url = base(peer[0])
    before = len(seen(url)["cancelled"])
    thread = server.thread()
    configurable = {"a2a": [agent(peer)], "calls": calls("long")}
    ended: list = []
    begun = threading.Event()

    def follow():
        body = {
            "assistant_id": "boss",
            "input": {"messages": "go"},
            "stream_mode": ["custom"],
            "config": {"configurable": configurable},
        }
        with server.client() as client, client.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
            for line in answer.iter_lines():
                if "begun" in line:
                    begun.set()
        ended.append(True)

    follower = threading.Thread(target=follow)
    follower.start()
    assert begun.wait(60)
    (active,) = server.ask("GET", f"/threads/{thread}/runs")
    with server.client() as client:
        answer = client.post(f"/threads/{thread}/runs/{active['run_id']}/cancel", params={"wait": "1"})
    assert answer.status_code < 300, answer.text
    follower.join(60)
    assert ended
    wait_for(lambda: len(seen(url)["cancelled"]) == before + 1, what="CancelTask")


# ---- conversations, credentials, configuration ----------------------------------


@pytest.mark.parametrize("peer", [("rpc", None), ("old", None)], ids=lambda peer: peer[0])
def test_a_thread_is_one_conversation_with_each_agent(server, agent, peer):
    one, other = server.thread(), server.thread()
    first = [m["content"] for m in tool_messages(run(server, [agent(peer)], "context", "context", thread=one))]
    again = tool_messages(run(server, [agent(peer)], "context", thread=one))[-1]["content"]
    elsewhere = only(run(server, [agent(peer)], "context", thread=other))["content"]
    assert first[0] == first[1] == again and len(again) == 36
    assert elsewhere != again


def test_the_card_names_and_describes_the_tool(server, base):
    url = base("rpc") + "/rpc"
    configurable = {"a2a": [{"url": url}], "calls": calls("hello", name="Agent_of_rpc")}
    message = only(server.wait("boss", {"messages": "go"}, thread=server.thread(), configurable=configurable))
    assert (message["name"], message["content"]) == ("Agent_of_rpc", "You said: hello")


def test_credentials_reach_only_their_agent_and_are_not_kept(server, agent, base):
    with_token = agent(("secure", None), token=TOKEN)
    message = only(run(server, [with_token], "hello"))
    assert message["content"] == "You said: hello"
    requests = [r for r in seen(base("secure"))["requests"] if r["path"].startswith("/secure/")]
    assert {r["authorization"] for r in requests} == {f"Bearer {TOKEN}"}
    with_header = agent(("secure", None), headers={"Authorization": f"Bearer {TOKEN}"})
    assert only(run(server, [with_header], "hello"))["content"] == "You said: hello"
    assert TOKEN.encode() not in server.database()


def test_without_credentials_the_agent_is_not_offered(server, agent):
    configurable = {"a2a": [agent(("secure", None))], "calls": calls("hello")}
    events = server.stream(
        "boss", {"messages": "go"}, thread=server.thread(), configurable=configurable, stream_mode=["custom", "values"]
    )
    (problem,) = [data for name, data, _ in events if name == "custom"]
    assert problem["type"] == "tool_source_problem" and "401" in problem["message"]
    message = only([data for name, data, _ in events if name == "values"][-1])
    assert message["status"] == "error"


def test_requests_carry_the_protocol_version(server, agent, base):
    run(server, [agent(("rest", None))], "hello")
    run(server, [agent(("legacy", "0.3"))], "hello")
    requests = seen(base("rpc"))["requests"]
    assert {r["version"] for r in requests if r["path"].startswith("/rest/")} == {"1.0"}
    assert {r["version"] for r in requests if r["path"].startswith("/legacy/")} == {"0.3"}


def test_unreachable_agents_do_not_affect_the_others(server, agent, scripted):
    gone = scripted(lambda peer, request: peer.answer(404, "no"))
    odd = scripted(lambda peer, request: peer.answer(200, {"name": "odd", "url": "ftp://x"}))
    agents = [{"name": "gone", "url": gone.url}, {"name": "odd", "url": odd.url}, agent(("rpc", None))]
    configurable = {"a2a": agents, "calls": calls("hello")}
    events = server.stream(
        "boss", {"messages": "go"}, thread=server.thread(), configurable=configurable, stream_mode=["custom", "values"]
    )
    (problem,) = [data["message"] for name, data, _ in events if name == "custom"]
    assert "gone: " in problem and "404" in problem and "odd: the card offers no supported interface" in problem
    assert only([data for name, data, _ in events if name == "values"][-1])["content"] == "You said: hello"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x", "must be"),
        ([{"url": "ftp://x"}], "http or https"),
        ([{"url": "http://x", "protocol": "9"}], "protocol"),
        ([{"url": "http://x", "headers": {"a b": "c"}}], "headers"),
        ([{"url": "http://x", "headers": {"X-A": "1\r\nX-B: 2"}}], "cannot be sent"),
        ([{"url": "http://x", "colour": 1}], "colour"),
    ],
)
def test_an_invalid_configuration_names_the_error(server, value, says):
    configurable = {"a2a": value, "calls": calls("hello")}
    events = server.stream(
        "boss", {"messages": "go"}, thread=server.thread(), configurable=configurable, stream_mode=["custom"]
    )
    (problem,) = [data["message"] for name, data, _ in events if name == "custom"]
    assert says in problem


# ---- agents that do not behave -----------------------------------------------------


def card(url: str, streams: bool = False, version: str = "1.0") -> dict:
    way = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version}
    return {"name": "scripted", "capabilities": {"streaming": streams}, "supportedInterfaces": [way]}


def task(state: str, **more) -> dict:
    return {"id": "t-1", "contextId": "c-1", "status": {"state": f"TASK_STATE_{state}"}, **more}


def peer_of(scripted, answer, streams: bool = False):
    """A server with a card; `answer(peer, request, method)` responds to its requests."""
    holder = {}

    def handler(peer, request):
        if request.method == "GET":
            peer.answer(200, card(holder["server"].url + "/rpc", streams))
        else:
            answer(peer, request, request.json["method"])

    holder["server"] = scripted(handler)
    return holder["server"]


def friend(peer, **more) -> dict:
    return {"name": "friend", "url": peer.url, **more}


def methods(peer) -> list[str]:
    return [request.json["method"] for request in peer.requests if request.method == "POST"]


def test_a_working_task_is_polled_until_it_is_done(server, scripted):
    asked = []

    def answer(peer, request, method):
        asked.append(method)
        if method == "SendMessage":
            peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING")}})
        elif asked.count("GetTask") == 2:
            peer.answer(503, "busy")
        else:
            done = asked.count("GetTask") > 3
            result = (
                task("COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "at last"}]}])
                if done
                else task("WORKING")
            )
            peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    peer = peer_of(scripted, answer)
    message = only(run(server, [friend(peer)], "work"))
    assert message["content"] == "at last"
    assert methods(peer) == ["SendMessage"] + ["GetTask"] * 4


def test_a_stream_that_breaks_is_picked_up(server, scripted):
    def answer(peer, request, method):
        if method == "SendStreamingMessage":
            peer.begin_sse()
            peer.event({"jsonrpc": "2.0", "id": 1, "result": {"task": task("SUBMITTED")}})
            peer.close()
        else:
            said = {"role": "ROLE_AGENT", "parts": [{"text": "all the same"}]}
            result = task("COMPLETED")
            result["status"]["message"] = said
            peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    peer = peer_of(scripted, answer, streams=True)
    assert only(run(server, [friend(peer)], "work"))["content"] == "all the same"
    assert methods(peer) == ["SendStreamingMessage", "GetTask"]


NONSENSE = {
    "an error of the protocol": (
        200,
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}},
        "Task not found (-32001)",
    ),
    "an error of HTTP": (400, {"error": {"code": 400, "message": "bad thing"}}, "HTTP status 400: bad thing (400)"),
    "no JSON": (200, "<html>", "not JSON"),
    "no result": (200, {"jsonrpc": "2.0", "id": 1, "result": {}}, "neither a message nor a task"),
    "no status": (200, {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t"}}}, "without a status"),
    "refusal": (403, "go away", "does not accept the credentials"),
    "elsewhere": (307, "", "redirect"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_an_error_for_the_model(server, scripted, case):
    status, body, says = NONSENSE[case]
    headers = {"Location": "http://127.0.0.1:9/"} if status == 307 else None
    peer = peer_of(scripted, lambda peer, request, method: peer.answer(status, body, headers=headers))
    message = only(run(server, [friend(peer)], "work"))
    assert message["status"] == "error"
    assert says in message["content"]


@pytest.mark.parametrize("data", ['{"jsonrpc": "2.0", "id": 1, "result": {"task', "\\xff", "[]", "{}"])
def test_a_stream_of_nonsense_is_an_error(server, scripted, data):
    def answer(peer, request, method):
        peer.begin_sse()
        peer.event(data)
        peer.end()

    message = only(run(server, [friend(peer_of(scripted, answer, streams=True))], "work"))
    assert message["status"] == "error" and "friend" in message["content"]


def test_an_answer_that_quotes_the_token_is_masked(server, scripted):
    def answer(peer, request, method):
        error = {"code": -32600, "message": "bad header " + request.headers["authorization"]}
        peer.answer(200, {"jsonrpc": "2.0", "id": 1, "error": error})

    peer = peer_of(scripted, answer)
    message = only(run(server, [friend(peer, token=TOKEN)], "work"))
    assert "bad header" in message["content"] and TOKEN not in message["content"]
    assert TOKEN.encode() not in server.database()


def test_credentials_do_not_follow_a_card_to_another_server(server, scripted):
    thief = scripted(lambda peer, request: peer.answer(200, {}))
    lure = scripted(lambda peer, request: peer.answer(200, card(thief.url)))
    configurable = {"a2a": [friend(lure, token=TOKEN)], "calls": calls("hello")}
    events = server.stream(
        "boss", {"messages": "go"}, thread=server.thread(), configurable=configurable, stream_mode=["custom"]
    )
    (problem,) = [data["message"] for name, data, _ in events if name == "custom"]
    assert "another server" in problem and TOKEN not in problem
    assert thief.requests == []
    # `endpoint` overrides the URL of the card.
    said = {"jsonrpc": "2.0", "id": 1, "result": {"message": {"messageId": "m", "parts": [{"text": "fine"}]}}}
    real = scripted(lambda peer, request: peer.answer(200, said))
    message = only(run(server, [friend(lure, token=TOKEN, endpoint=real.url)], "hello"))
    assert message["content"] == "fine"
    assert real.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_card_is_fetched_once_for_many_runs(server, scripted):
    said = {"jsonrpc": "2.0", "id": 1, "result": {"message": {"messageId": "m", "parts": [{"text": "hi"}]}}}
    peer = peer_of(scripted, lambda peer, request, method: peer.answer(200, said))
    for _ in range(3):
        assert only(run(server, [friend(peer)], "hello"))["content"] == "hi"
    assert [request.method for request in peer.requests] == ["GET", "POST", "POST", "POST"]
    # Other credentials may get another card.
    run(server, [friend(peer, token="other-token")], "hello")
    assert [request.method for request in peer.requests][4:] == ["GET", "POST"]


def test_an_ignored_question_ends_the_task(server, scripted):
    def answer(peer, request, method):
        result = {"task": task("INPUT_REQUIRED")} if method == "SendMessage" else task("CANCELED")
        peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    peer = peer_of(scripted, answer)
    thread = server.thread()
    values = run(server, [friend(peer)], "work", thread=thread)
    assert values["__interrupt__"][0]["value"]["task_id"] == "t-1"
    configurable = {"a2a": {"agents": [friend(peer)]}, "calls": calls("work")}
    values = server.wait(
        "boss", thread=thread, configurable=configurable, command={"resume": [{"type": "ignore", "args": None}]}
    )
    assert only(values)["status"] == "error"
    wait_for(lambda: methods(peer) == ["SendMessage", "CancelTask"], what="CancelTask")


def test_an_answer_as_data_goes_as_data(server, scripted):
    def answer(peer, request, method):
        message = request.json["params"]["message"]
        if "taskId" in message:
            text = json.dumps([message["taskId"], message["contextId"], message["parts"]])
            result = {"message": {"messageId": "m", "parts": [{"text": text}]}}
        else:
            result = {"task": task("AUTH_REQUIRED")}
        peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    peer = peer_of(scripted, answer)
    thread = server.thread()
    values = run(server, [friend(peer)], "work", thread=thread)
    assert values["__interrupt__"][0]["value"]["state"] == "auth-required"
    configurable = {"a2a": {"agents": [friend(peer)]}, "calls": calls("work")}
    values = server.wait("boss", thread=thread, configurable=configurable, command={"resume": {"code": 7}})
    assert json.loads(only(values)["content"]) == ["t-1", "c-1", [{"data": {"code": 7}}]]


def test_a_call_that_takes_too_long_cancels_its_task(server, scripted):
    def answer(peer, request, method):
        if method == "CancelTask":
            peer.answer(200, {"jsonrpc": "2.0", "id": 1, "result": task("CANCELED")})
            return
        peer.begin_sse()
        peer.event({"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING")}})
        peer.wait_closed()

    peer = peer_of(scripted, answer, streams=True)
    configurable = {"a2a": [friend(peer)], "calls": calls("work")}
    message = only(server.wait("hasty", {"messages": "go"}, thread=server.thread(), configurable=configurable))
    assert message["status"] == "error" and "timed out after" in message["content"]
    wait_for(lambda: "CancelTask" in methods(peer), what="CancelTask")
    assert peer.requests[-1].json["params"] == {"id": "t-1"}


def test_a_stream_that_does_not_end_after_the_end_is_left(server, scripted):
    def answer(peer, request, method):
        peer.begin_sse()
        peer.event(
            {"jsonrpc": "2.0", "id": 1, "result": {"message": {"messageId": "m", "parts": [{"text": "that was it"}]}}}
        )
        peer.wait_closed()

    message = only(run(server, [friend(peer_of(scripted, answer, streams=True))], "work"))
    assert message["content"] == "that was it"


def test_a_question_outlives_the_server(heddle, agent):
    own = heddle(graphs={"boss": BOSS})
    thread = own.thread()
    configurable = {"a2a": [agent(("secure", None), token=TOKEN)], "calls": calls("ask")}
    values = own.wait("boss", {"messages": "go"}, thread=thread, configurable=configurable)
    task_id = values["__interrupt__"][0]["value"]["task_id"]
    own.kill()
    own.restart()
    # The credentials were only in memory: the client sends them again with the resume value.
    values = own.wait("boss", thread=thread, configurable=configurable, command={"resume": "Oslo"})
    message = only(values)
    assert (message["content"], message["artifact"]["task_id"]) == ("You chose: Oslo", task_id)
    assert TOKEN.encode() not in own.database()
