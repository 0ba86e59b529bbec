"""Details that clients hide: headers, bytes of streams, both forms of queries, forms of bodies."""

import json
import re
import uuid

import pytest
from plain import Thread, events, human, identity, texts


@pytest.fixture
def thread(http):
    return Thread(http)


def test_the_address_of_a_run(thread, http):
    body = {"assistant_id": "echo", "input": human("hi")}
    pattern = rf"/threads/{thread.id}/runs/[0-9a-f-]{{36}}"
    for ending in ("", "/stream", "/wait"):
        answer = http.post(thread.path(f"/runs{ending}"), json={**body, "multitask_strategy": "enqueue"})
        assert re.fullmatch(pattern, answer.headers["content-location"])


@pytest.mark.beyond_peer("names no place to go on, and no runs without a thread")
def test_the_location_to_resume_at(thread, http):
    body = {"assistant_id": "echo", "input": human("hi")}
    answer = http.post(thread.path("/runs/stream"), json=body)
    assert answer.headers["location"] == answer.headers["content-location"] + "/stream"
    answer = http.post(thread.path("/runs/wait"), json=body)
    assert answer.headers["location"] == answer.headers["content-location"] + "/join"
    answer = http.post("/runs/wait", json=body)
    assert re.fullmatch(r"/runs/[0-9a-f-]{36}", answer.headers["content-location"])


def test_streams_are_event_streams(thread, http):
    answer = http.post(thread.path("/runs/stream"), json={"assistant_id": "echo", "input": human("hi")})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    assert "content-encoding" not in answer.headers and "content-length" not in answer.headers
    for frame in answer.text.strip("\n").split("\n\n"):
        lines = [line for line in frame.split("\n") if not line.startswith(":")]
        assert [line.split(":")[0] for line in lines] in ([], ["event", "data", "id"])
        for line in lines:
            if line.startswith("data: "):
                json.loads(line.removeprefix("data: "))


@pytest.mark.beyond_peer("says nothing to proxies")
def test_streams_are_not_buffered_by_proxies(thread, http):
    answer = http.post(
        thread.path("/runs/stream"),
        json={"assistant_id": "echo", "input": human("hi " * 5000)},
        headers={"Accept-Encoding": "gzip"},
    )
    assert answer.headers["x-accel-buffering"] == "no" and "content-encoding" not in answer.headers


def test_browsers_may_read_the_headers(http, thread):
    answer = http.get(thread.path(""), headers={"Origin": "http://localhost:3000"})
    assert answer.headers["access-control-allow-origin"] in ("*", "http://localhost:3000")
    assert "content-location" in answer.headers["access-control-expose-headers"].lower()
    asked = {
        "Origin": "http://localhost:3000",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-api-key",
    }
    answer = http.options("/threads", headers=asked)
    assert answer.status_code in (200, 204)
    assert answer.headers["access-control-allow-origin"] in ("*", "http://localhost:3000")


@pytest.mark.beyond_peer("exposes two of them")
def test_browsers_may_read_all_headers(http, thread):
    exposed = (
        http.get(thread.path(""), headers={"Origin": "http://localhost:3000"})
        .headers["access-control-expose-headers"]
        .lower()
    )
    assert {each.strip() for each in exposed.split(",")} >= {
        "content-location", "location", "x-pagination-total", "x-pagination-next",
    }  # fmt: skip


@pytest.mark.parametrize("query", ["stream_mode=values&stream_mode=updates", 'stream_mode=["values","updates"]'])
def test_lists_in_queries(thread, http, query):
    run = http.post(
        thread.path("/runs"),
        json={
            "assistant_id": "echo",
            "input": human("hi"),
            "stream_mode": ["values", "updates"],
            "stream_resumable": True,
        },
    ).json()
    answer = http.get(thread.path(f"/runs/{run['run_id']}/stream?{query}"), headers={"Last-Event-ID": "-1"})
    assert {event for event, _, _ in events(answer.text)} >= {"metadata", "values", "updates"}


@pytest.mark.beyond_peer("does not filter")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("stream_mode=updates", {"updates"}),
        ("stream_mode=values,updates", {"values", "updates"}),
        ("stream_mode=%5B%22values%22%5D", {"values"}),
        ("stream_mode=", {"values", "updates", "tasks"}),
        ("", {"values", "updates", "tasks"}),
    ],
)
def test_modes_of_a_join(thread, http, query, expected):
    body = {
        "assistant_id": "echo", "input": human("hi"), "stream_mode": ["values", "updates", "tasks"],
        "stream_resumable": True,
    }  # fmt: skip
    run = http.post(thread.path("/runs"), json=body).json()
    http.get(thread.path(f"/runs/{run['run_id']}/join"))
    answer = http.get(thread.path(f"/runs/{run['run_id']}/stream?{query}"), headers={"Last-Event-ID": "-1"})
    assert {event for event, _, _ in events(answer.text)} - {"metadata", "end"} == expected


@pytest.mark.beyond_peer("takes 0 for true")
@pytest.mark.parametrize("value", ["0", "false", "False", "no", "1", "true", "TRUE", "yes"])
def test_truth_in_queries(thread, http, value):
    run = http.post(thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}}).json()
    answer = http.post(thread.path(f"/runs/{run['run_id']}/cancel?wait={value}"))
    assert 200 <= answer.status_code < 300
    if value.lower() in ("1", "true", "yes"):
        assert http.get(thread.path(f"/runs/{run['run_id']}")).json()["status"] == "interrupted"
    wrong = http.post(thread.path(f"/runs/{run['run_id']}/cancel?wait=perhaps"))
    assert wrong.status_code == 422


def test_bodies_as_plain_text(http):
    answer = http.post(
        "/threads", content=b'{"metadata": {"a": 1}}', headers={"Content-Type": "text/plain;charset=UTF-8"}
    )
    assert answer.status_code == 200 and answer.json()["metadata"] == {"a": 1}


@pytest.mark.beyond_peer("needs a body, and no null in it")
def test_no_body_and_null(http, thread):
    assert http.post("/threads").status_code == 200
    assert http.post("/threads", content=b"null").status_code == 200
    assert http.post("/threads", json={"metadata": None, "thread_id": None, "ttl": None}).status_code == 200
    assert http.post("/threads/search").status_code == 200
    assert http.post("/assistants/search", json={"metadata": None, "graph_id": None}).status_code == 200
    assert http.post(thread.path("/history")).status_code == 200
    body = {"assistant_id": "echo", "input": human("hi"), "command": None, "checkpoint": None, "metadata": None,
            "config": None, "webhook": None, "multitask_strategy": None, "stream_mode": None}  # fmt: skip
    assert texts(thread.ask("POST", thread.path("/runs/wait"), json=body)) == ["hi", "You said: hi"]


def test_unknown_members_are_ignored(thread):
    assert texts(thread.run("echo", input=human("hi"), assistantId="x", streamMode=["y"], colour="blue"))


@pytest.mark.beyond_peer("has other forms of errors")
def test_errors_have_one_form(http, thread):
    unknown = uuid.uuid4()
    for method, path, body, status, detail in (
        ("GET", f"/threads/{unknown}", None, 404, f"Thread with ID {unknown} not found"),
        ("GET", f"/threads/{unknown}/state", None, 404, f"Thread with ID {unknown} not found"),
        ("GET", f"/assistants/{unknown}", None, 404, "Assistant not found"),
        ("GET", thread.path(f"/runs/{unknown}"), None, 404, "Run not found"),
        ("POST", "/threads", {"thread_id": thread.id}, 409, "Thread already exists"),
        (
            "POST", thread.path("/runs"), {"assistant_id": "nobody"}, 404,
            'No assistant found for "nobody". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
        ),
        ("GET", "/threads/not-a-uuid", None, 422, None),
        ("POST", "/threads", "not json", 422, None),
        ("POST", "/threads", {"metadata": ["no", "object"]}, 422, None),
        ("POST", thread.path("/runs"), {"assistant_id": "echo", "config": ["no", "object"]}, 422, None),
        ("POST", thread.path("/runs"), {"assistant_id": "echo", "command": "no object"}, 422, None),
        ("GET", "/no/such/path", None, 404, None),
        ("PUT", "/threads", {}, 405, None),
    ):  # fmt: skip
        raw = isinstance(body, str)
        answer = http.request(
            method, path, **({"content": body} if raw else {"json": body} if body is not None else {})
        )
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        assert answer.headers["content-type"].startswith("application/json")
        assert isinstance(answer.json()["detail"], str) and answer.json()["detail"]
        assert detail is None or answer.json() == {"detail": detail}


def test_ok_and_info(http):
    assert http.get("/ok").json() == {"ok": True}
    info = http.get("/info").json()
    assert info["version"] and info["flags"]["assistants"] is True


@pytest.mark.beyond_peer("has none of them")
def test_requests_of_monitoring(http):
    assert http.get("/ok?check_db=1").json() == {"ok": True}
    assert http.get("/health").status_code == 200
    assert http.get("/info").json()["flags"]["crons"] is True
    metrics = http.get("/metrics")
    assert metrics.status_code == 200 and metrics.headers["content-type"].startswith("text/plain")
    assert re.search(r"^# TYPE \w+ (counter|gauge|histogram)$", metrics.text, re.M)
    assert http.get("/docs").headers["content-type"].startswith("text/html")
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for path in ("/threads/{thread_id}/branches", "/threads/{thread_id}/timeline", "/threads/{thread_id}/runs/stream"):
        assert path in document["paths"]


def test_accept_encoding_does_not_change_the_content(thread, http):
    """The server decides whether it compresses a response; on loopback that does not pay."""
    thread.say("echo", "many words " * 4000)
    answers = [http.get(thread.path("/state"), headers={"Accept-Encoding": each}) for each in ("gzip", "identity", "*")]
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert "content-encoding" not in answers[1].headers


@pytest.mark.beyond_peer("counts its own way")
def test_searches_report_their_pages(http):
    owner = str(uuid.uuid4())
    for _ in range(5):
        http.post("/threads", json={"metadata": {"owner": owner}})
    for offset, rest in ((0, "2"), (2, "4"), (4, None)):
        answer = http.post("/threads/search", json={"metadata": {"owner": owner}, "limit": 2, "offset": offset})
        assert answer.headers["x-pagination-total"] == "5" and answer.headers.get("x-pagination-next") == rest


def test_wait_keeps_the_connection_alive(thread, http):
    """White space may precede the response, but not follow it."""
    answer = http.post(thread.path("/runs/wait"), json={"assistant_id": "nap", "input": {"ms": 2500}})
    assert json.loads(answer.text)["log"] == ["before", "slept", "after"]
    assert answer.text.strip() == answer.text.lstrip()


def test_many_requests_on_one_connection(http, thread):
    thread.say("echo", "hi")
    states = {json.dumps(http.get(thread.path("/state")).json(), sort_keys=True) for _ in range(50)}
    assert len(states) == 1


@pytest.mark.beyond_peer("takes one of the two")
def test_both_dialects_of_the_store(http):
    place = str(uuid.uuid4())
    assert http.put("/store/items", json={"namespace": [place, "a"], "key": "k", "value": {"n": 1}}).status_code == 204
    for query in (f"namespace={place}.a&key=k", f"namespace={place}&namespace=a&key=k"):
        assert http.get(f"/store/items?{query}").json()["value"] == {"n": 1}
    assert http.get(f"/store/items?namespace={place}.a&key=none").json() is None
    assert http.request("DELETE", "/store/items", json={"namespace": [place, "a"], "key": "k"}).status_code == 204


@pytest.mark.beyond_peer("has the stream of a thread not, and the numbers of a run begin at 0")
def test_the_stream_of_a_thread_picks_up_anywhere(thread, http):
    seen = []
    for text in ("one", "two"):
        body = {"assistant_id": "echo", "input": human(text), "stream_resumable": True}
        seen += events(http.post(thread.path("/runs/stream"), json=body).text)
    for number in (0, 2, 5, len(seen) - 2):
        found = []
        headers = {"Last-Event-ID": seen[number][2]}
        with http.stream("GET", thread.path("/stream"), headers=headers) as answer:
            text = ""
            for piece in answer.iter_text():
                text += piece
                found = events(text[: text.rfind("\n\n") + 2] if "\n\n" in text else "")
                if len(found) >= len(seen) - number - 1:
                    break
        assert found == seen[number + 1 :]


def test_a_fork_point_may_come_with_everything(thread):
    """useStream sends the head's checkpoint back without its thread."""
    thread.say("echo", "one")
    checkpoint = {key: value for key, value in thread.state()["checkpoint"].items() if key != "thread_id"}
    values = thread.say("echo", "two", checkpoint=checkpoint)
    assert texts(values)[::2] == ["one", "two"]
    assert identity(thread.history()[3]) == checkpoint["checkpoint_id"]
