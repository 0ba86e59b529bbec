"""/threads, endpoint by endpoint: responses and refusals."""

import contextlib
import threading
import time
import uuid
from functools import partial

import httpx
import pytest
from plain import Thread, human, identity, texts
from server import Server
from table import refused, refuses_too_much, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("refuses differently")
MEMBERS = {
    "thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "status", "config", "values",
    "interrupts", "error",
}  # fmt: skip


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def napping(thread):
    """A busy thread."""
    thread.busy = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    yield thread
    thread.http.post(thread.path(f"/runs/{thread.busy['run_id']}/cancel?wait=1"))


def gone(thread):
    return {"detail": f"Thread with ID {thread} not found"}


# ---- POST /threads


def test_a_new_thread(http):
    made = http.post("/threads", json={"metadata": {"a": {"b": [1.0, 12345678901234567890]}}})
    assert made.status_code == 200
    thread = made.json()
    assert set(thread) == MEMBERS and thread["status"] == "idle"
    assert thread["values"] is None and thread["interrupts"] == {} and thread["config"] == {}
    assert '"metadata":{"a":{"b":[1.0,12345678901234567890]}}' in made.text  # unchanged
    assert thread["created_at"] == thread["updated_at"] == thread["state_updated_at"]
    assert http.get(f"/threads/{thread['thread_id']}").json() == thread


@pytest.mark.parametrize("body", [None, {}, {"metadata": None, "thread_id": None, "ttl": None, "supersteps": None}])
def test_all_members_are_optional(http, body):
    answer = http.post("/threads", json=body) if body is not None else http.post("/threads")
    assert answer.status_code == 200 and answer.json()["metadata"] == {}
    assert http.post("/threads", content=b"null").status_code == 200


def test_an_id_is_written_in_one_way(http):
    own = str(uuid.uuid4())
    assert http.post("/threads", json={"thread_id": own.upper()}).json()["thread_id"] == own
    assert http.get(f"/threads/{own.upper()}").json()["thread_id"] == own


def test_an_existing_thread(http, thread):
    text = refused(http, "POST", "/threads", 409, json={"thread_id": thread.id})
    assert text == "Thread already exists"
    refused(http, "POST", "/threads", 409, json={"thread_id": thread.id, "if_exists": "raise"})
    kept = http.post("/threads", json={"thread_id": thread.id, "if_exists": "do_nothing", "metadata": {"b": 1}})
    assert kept.status_code == 200 and kept.json() == thread.record() and kept.json()["metadata"] == {}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"thread_id": "x"}, "thread_id"),
        ({"thread_id": 3}, "thread_id"),
        ({"metadata": []}, "metadata"),
        ({"metadata": "m"}, "metadata"),
        ({"if_exists": "perhaps"}, "if_exists"),
        ({"if_exists": 1}, "if_exists"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": "60"}, "ttl"),
        ({"ttl": {}}, "ttl"),
        ({"ttl": {"ttl": 1, "strategy": "burn"}}, "ttl"),
        ({"ttl": {"ttl": 1, "strategy": 1}}, "ttl"),
        ({"supersteps": {}}, "supersteps"),
        ({"supersteps": [1], "metadata": {"graph_id": "echo"}}, "supersteps"),
        ({"supersteps": [{"updates": []}], "metadata": {"graph_id": "echo"}}, "supersteps"),
        ({"supersteps": [{"updates": [1]}], "metadata": {"graph_id": "echo"}}, "supersteps"),
        ({"supersteps": [{"updates": [{"values": 1}]}], "metadata": {"graph_id": "echo"}}, "supersteps"),
        ({"supersteps": [{"updates": [{"command": 1}]}], "metadata": {"graph_id": "echo"}}, "supersteps"),
        ({"supersteps": [{"updates": [{"values": {}, "as_node": 1}]}], "metadata": {"graph_id": "echo"}}, "as_node"),
        ({"supersteps": [{"updates": [{"values": {}}]}]}, "graph_id"),
        ({"supersteps": [{"updates": [{"values": {}}]}], "metadata": {"graph_id": "nobody"}}, "graph_id"),
        ({"supersteps": [{"updates": [{"values": {}, "as_node": "no"}]}], "metadata": {"graph_id": "echo"}}, "no"),
    ],
)
def test_create_refuses(http, body, named):
    own = str(uuid.uuid4())
    refused(http, "POST", "/threads", 422, named, json={"thread_id": own, **body})
    assert http.get(f"/threads/{own}").json() == gone(own)
    assert http.post("/threads/count", json={"metadata": {"own": own}}).json() == 0


def test_create_refuses_a_name_that_comes_twice(http):
    for body in (
        b'{"metadata": {"a": 1, "a": 2}}',
        b'{"metadata": {}, "metadata": {}}',
        b'{"metadata": {"list": [{"deep": {"a": 1, "b": 2, "\\u0061": 3}}]}}',
        b'{"unknown": {"a": 1, "a": 1}}',
        b'{"metadata": {' + b"".join(b'"m%d": 1, ' % number for number in range(100)) + b'"a": 1, "a": 2}}',
    ):
        refused(http, "POST", "/threads", 422, "twice", content=body)


def test_create_refuses_invalid_json(http):
    refuses_what_is_not_json(http, "POST", "/threads", needs_body=False)
    refuses_too_much(http, "POST", "/threads")


def test_supersteps_make_checkpoints(http):
    steps = [
        {"updates": [{"values": human("one", "m1"), "as_node": "__start__"}]},
        {"updates": [{"command": {"update": {"verdict": "yes"}}, "as_node": "ask"}]},
    ]
    thread = Thread(http, metadata={"graph_id": "approval"}, supersteps=steps)
    assert [state["metadata"]["source"] for state in thread.history()] == ["update", "update"]
    state = thread.state()
    assert state["next"] == ["reply"] and state["values"]["verdict"] == "yes"
    record = thread.record()
    assert texts(record["values"]) == ["one"] and record["status"] == "interrupted" and record["interrupts"] == {}
    assert texts(thread.run("approval", input=None)) == ["one", "Approved: yes"]


def test_supersteps_of_an_agent(http):
    own = http.get("/assistants/echo").json()["assistant_id"]
    steps = [{"updates": [{"values": human("hi"), "as_node": "__start__"}]}]
    thread = Thread(http, metadata={"assistant_id": own, "graph_id": "loop"}, supersteps=steps)
    assert thread.state()["checkpoint"]["checkpoint_ns"] == f"assistant:{own}"


# ---- time to live


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (60, {"ttl": 60, "strategy": "delete"}),
        (0.5, {"ttl": 0.5, "strategy": "delete"}),
        ({"ttl": 3}, {"ttl": 3, "strategy": "delete"}),
        ({"ttl": 3, "strategy": "keep_latest"}, {"ttl": 3, "strategy": "keep_latest"}),
    ],
)
def test_ttl_is_included_on_request(http, given, shown):
    thread = Thread(http, ttl=given)
    for include in ("ttl", '["ttl"]', "other,ttl"):
        found = thread.ask("GET", thread.path(""), params={"include": include})["ttl"]
        assert found.pop("expires_at") > thread.record()["created_at"] and found == shown
    assert "ttl" not in thread.record()


@pytest.mark.parametrize("none", [0, {"ttl": 0}])
def test_a_time_to_live_is_taken_away(http, none):
    thread = Thread(http, ttl=60)
    thread.ask("PATCH", thread.path(""), json={"metadata": {"a": 1}})
    assert thread.ask("GET", thread.path(""), params={"include": "ttl"})["ttl"]["ttl"] == 60
    thread.ask("PATCH", thread.path(""), json={"ttl": none})
    assert thread.ask("GET", thread.path(""), params={"include": "ttl"})["ttl"] is None


def test_an_expired_thread(http):
    owner = str(uuid.uuid4())
    thread = Thread(http, metadata={"owner": owner}, ttl=0.001)
    lasting = Thread(http, metadata={"owner": owner}, ttl={"ttl": 0.001, "strategy": "keep_latest"})
    time.sleep(0.2)
    assert thread.ask("GET", thread.path(""), 404) == gone(thread.id)
    for rest in ("/state", "/history", "/branches", "/timeline", "/agents", "/messages"):
        thread.ask("GET", thread.path(rest), 404)
    found = http.post("/threads/search", json={"metadata": {"owner": owner}})
    assert [each["thread_id"] for each in found.json()] == [lasting.id]
    assert http.post("/threads/count", json={"metadata": {"owner": owner}}).json() == 1
    assert http.post("/threads", json={"thread_id": thread.id}).json()["metadata"] == {}  # a new one


# ---- GET and PATCH /threads/{id}


def test_unknown_threads(http):
    for method, rest, body in (
        ("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None), ("PATCH", "/state", {}),
        ("GET", "/state", None), ("GET", f"/state/{uuid.uuid4()}", None), ("POST", "/state/checkpoint", {}),
        ("POST", "/state", {"values": {}}), ("GET", "/history", None), ("POST", "/history", {}),
        ("GET", "/branches", None), ("PATCH", "/branches", {"checkpoint_id": "x"}), ("GET", "/timeline", None),
        ("GET", "/agents", None), ("GET", "/messages", None),
    ):  # fmt: skip
        unknown = uuid.uuid4()
        options = {} if body is None else {"json": body}
        text = refused(http, method, f"/threads/{unknown}{rest}", 404, **options)
        assert text == f"Thread with ID {unknown} not found"
        for wrong in ("x", "1234", "00000000-0000-0000-0000-00000000000g"):
            refused(http, method, f"/threads/{wrong}{rest}", 422, "thread_id", **options)


def test_patch_merges_metadata(http):
    thread = Thread(http, metadata={"a": 1, "b": {"x": 1}})
    changed = thread.ask("PATCH", thread.path(""), json={"metadata": {"b": {"y": 2}, "c": None}})
    assert changed["metadata"] == {"a": 1, "b": {"y": 2}, "c": None}
    assert changed["updated_at"] > changed["created_at"] and changed == thread.record()
    assert thread.ask("PATCH", thread.path(""), json={})["metadata"] == changed["metadata"]
    changed = thread.ask("PATCH", thread.path("/state"), json={"metadata": {"d": 1}})
    assert changed["metadata"]["d"] == 1


def test_patch_has_no_body_with_return_minimal(http, thread):
    answer = http.patch(thread.path(""), json={"metadata": {"a": 1}}, headers={"Prefer": "return=minimal"})
    assert answer.status_code == 204 and answer.content == b""
    assert thread.record()["metadata"] == {"a": 1}
    assert http.patch(thread.path(""), json={}, headers={"Prefer": "return=representation"}).status_code == 200


@pytest.mark.parametrize("rest", ["", "/state"])
def test_patch_refuses(http, thread, rest):
    for body, named in (({"metadata": []}, "metadata"), ({"ttl": "x"}, "ttl"), ({"metadata": 1}, "metadata")):
        refused(http, "PATCH", thread.path(rest), 422, named, json=body)
    refuses_what_is_not_json(http, "PATCH", thread.path(rest))
    refuses_too_much(http, "PATCH", thread.path(rest))
    assert thread.record()["metadata"] == {}


def test_many_patches_at_once_are_all_kept(server):
    from concurrent.futures import ThreadPoolExecutor

    with httpx.Client(base_url=server.url, timeout=60) as http, ThreadPoolExecutor(8) as pool:
        thread = Thread(http)
        body = [{"metadata": {f"k{number}": number}} for number in range(40)]
        answers = list(pool.map(lambda each: http.patch(thread.path(""), json=each).status_code, body))
        assert answers == [200] * 40
        assert thread.record()["metadata"] == {f"k{number}": number for number in range(40)}


# ---- DELETE


def test_delete(http, thread):
    thread.say("echo", "hi")
    assert thread.ask("DELETE", thread.path(""), 204) is None
    thread.ask("DELETE", thread.path(""), 404)
    assert thread.ask("GET", thread.path("/history"), 404) == gone(thread.id)


def test_delete_cancels_running_and_queued_runs(http, thread):
    runs = [
        thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}}) for _ in "abc"
    ]
    assert thread.record()["status"] == "busy"
    thread.ask("DELETE", thread.path(""), 204)
    for run in runs:
        thread.ask("GET", thread.path(f"/runs/{run['run_id']}"), 404)
    Thread.__init__(thread, http, thread_id=thread.id)
    assert thread.state()["checkpoint"] is None and thread.record()["status"] == "idle"
    assert texts(thread.say("echo", "again")) == ["again", "You said: again"]


def test_delete_ends_the_stream_of_the_thread(http, thread):
    with http.stream("GET", thread.path("/stream")) as stream:
        thread.ask("DELETE", thread.path(""), 204)
        with contextlib.suppress(httpx.RemoteProtocolError):  # the stream may be cut off
            list(stream.iter_lines())


# ---- copy


def test_copy(http, thread):
    thread.say("echo", "hi", "m1")
    thread.ask("PATCH", thread.path(""), json={"metadata": {"colour": "red"}})
    made = thread.ask("POST", thread.path("/copy"))
    record = thread.record()
    assert set(made) == MEMBERS and made["thread_id"] != thread.id
    for same in ("metadata", "values", "config", "interrupts"):
        assert made[same] == record[same]
    other = Thread.__new__(Thread)
    other.http, other.id = http, made["thread_id"]
    assert [identity(state) for state in other.history()] == [identity(state) for state in thread.history()]
    assert {state["checkpoint"]["thread_id"] for state in other.history()} == {other.id}
    thread.ask("DELETE", thread.path(""), 204)
    assert texts(other.say("echo", "more"))[::2] == ["hi", "more"]


def copy(thread: Thread) -> Thread:
    """Returns the copy; each of its states names the copy, and otherwise equals its original."""
    made = Thread.__new__(Thread)
    made.http, made.id = thread.http, thread.ask("POST", thread.path("/copy"))["thread_id"]
    states = made.history()
    assert {state["metadata"]["thread_id"] for state in states} == {made.id}
    assert {state["checkpoint"]["thread_id"] for state in states} == {made.id}
    for state, original in zip(states, thread.history(), strict=True):
        assert {**state["metadata"], "thread_id": thread.id} == original["metadata"]
        assert state["values"] == original["values"] and state["tasks"] == original["tasks"]
    return made


def test_a_copy_of_an_interrupted_thread_is_interrupted(thread):
    thread.say("approval", "hi")
    made = copy(thread)
    record, original = made.record(), thread.record()
    assert record["status"] == "interrupted" and record["interrupts"] == original["interrupts"] != {}
    assert made.run("approval", command={"resume": "yes"})["verdict"] == "yes"
    assert made.record()["status"] == "idle" and thread.record()["status"] == "interrupted"


def test_a_copy_of_a_thread_that_stopped_before_a_node_is_interrupted(thread):
    thread.say("approval", "hi", interrupt_before=["ask"])
    assert copy(thread).record()["status"] == "interrupted"


def test_a_copy_of_a_busy_thread_has_the_interrupts_of_its_own_state(napping):
    record = napping.ask("POST", napping.path("/copy"))
    state = napping.http.get(f"/threads/{record['thread_id']}/state").json()
    assert not any(task["interrupts"] for task in state["tasks"])
    assert record["status"] == "idle" and record["interrupts"] == {}


def test_copy_keeps_the_chosen_head(http, thread):
    thread.say("echo", "one", "m1")
    first = identity(thread.state())
    thread.say("echo", "two", "m2")
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": first})
    copied = thread.ask("POST", thread.path("/copy"), content=b"{}")
    assert texts(copied["values"]) == ["one", "You said: one"]
    assert http.get(f"/threads/{copied['thread_id']}/branches").json()["head"] == first


def test_copy_refuses(http):
    unknown = uuid.uuid4()
    assert refused(http, "POST", f"/threads/{unknown}/copy", 409) == f"Thread with ID {unknown} not found"
    refused(http, "POST", "/threads/x/copy", 422, "thread_id")
    refuses_too_much(http, "POST", f"/threads/{unknown}/copy")


# ---- prune


def test_prune_deletes(http, napping):
    other = Thread(http)
    body = {"thread_ids": [other.id, napping.id, other.id, str(uuid.uuid4())]}
    assert napping.ask("POST", "/threads/prune", json=body) == {"pruned_count": 2}
    for each in (other, napping):
        each.ask("GET", each.path(""), 404)
    assert napping.ask("POST", "/threads/prune", json={"thread_ids": []}) == {"pruned_count": 0}


def test_prune_keeps_the_latest(http, thread):
    thread.say("echo", "one", "m1")
    first = identity(thread.state())
    thread.run("loop", input={"count": 0})
    thread.say("echo", "two", "m2")
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": first})
    body = {"thread_ids": [thread.id], "strategy": "keep_latest"}
    assert thread.ask("POST", "/threads/prune", json=body) == {"pruned_count": 1}
    for agent, count in (("echo", 1), ("loop", 1)):
        assert len(thread.history(assistant_id=agent)) == count
    assert texts(thread.state()["values"])[::2] == ["one", "two"]  # the selected head is gone
    assert texts(thread.record()["values"])[::2] == ["one", "two"]
    assert texts(thread.say("echo", "three"))[::2] == ["one", "two", "three"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"thread_ids": None},
        {"thread_ids": "x"},
        {"thread_ids": ["x"]},
        {"thread_ids": [1]},
        {"thread_ids": [], "strategy": "burn"},
        {"thread_ids": [str(uuid.UUID(int=1))] * 10_001},
    ],
)
def test_prune_refuses(http, thread, body):
    refused(http, "POST", "/threads/prune", 422, json=body)
    thread.record()


def test_prune_refuses_invalid_json(http):
    refuses_what_is_not_json(http, "POST", "/threads/prune")
    refuses_too_much(http, "POST", "/threads/prune")


# ---- search and count


@pytest.fixture(scope="module")
def library(server):
    """Threads of all kinds, oldest first, and the metadata that only they have."""
    owner = {"owner": str(uuid.uuid4())}
    with httpx.Client(base_url=server.url, timeout=60) as http:
        made = [Thread(http, metadata={**owner, "n": number, "deep": {"a": [number, "x"]}}) for number in range(5)]
        made[0].say("approval", "hi")
        made[1].run("fanout", input={"items": [2]})
        made[2].run("failing", input={"log": []})
        yield owner, [thread.id for thread in made]


def find(http, **body):
    answer = http.post("/threads/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def ids(answer):
    return [each["thread_id"] for each in answer.json()]


def test_search_is_newest_first(http, library):
    owner, made = library
    answer = find(http, metadata=owner)
    assert ids(answer) == made[::-1] and all(set(each) == MEMBERS for each in answer.json())
    assert answer.headers["x-pagination-total"] == "5" and "x-pagination-next" not in answer.headers
    for each in answer.json():
        assert each == http.get(f"/threads/{each['thread_id']}").json()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"status": "interrupted"}, [0]),
        ({"status": "error"}, [2]),
        ({"status": "idle"}, [1, 3, 4]),
        ({"status": "busy"}, []),
        ({"values": {"total": 4}}, [1]),
        ({"values": {"total": 4.0}}, [1]),
        ({"values": {"total": 5}}, []),
        ({"values": {"messages": [{"content": "hi"}]}}, [0]),
        ({"values": {}}, [0, 1, 2, 3, 4]),
        ({"metadata": {"n": 3}}, [3]),
        ({"metadata": {"deep": {"a": [4]}}}, [4]),
        ({"metadata": {"deep": {"a": ["x", 2]}}}, [2]),
        ({"metadata": {"deep": {"a": "x"}}}, []),
        ({"metadata": {"nothing": None}}, []),
        ({"status": "idle", "values": {"total": 4}}, [1]),
    ],
)
def test_search_and_count_filter(http, library, filters, expected):
    owner, made = library
    filters = {**filters, "metadata": {**owner, **filters.get("metadata", {})}}
    found = find(http, **filters)
    assert sorted(ids(found)) == sorted(made[n] for n in expected)
    assert found.headers["x-pagination-total"] == str(len(expected))
    assert http.post("/threads/count", json=filters).json() == len(expected)


def test_search_by_title(http):
    owner = str(uuid.uuid4())
    titles = ["Weather in Oslo", "weather: Ärger", "Żółw", "", None, 3, ["weather"]]
    for title in titles:
        Thread(http, metadata={"owner": owner, "title": title})
    Thread(http, metadata={"owner": owner, "name": "weather"})
    Thread(http, metadata={"title": "weather of others"})
    for text, found in (
        ("weather", titles[1::-1]), ("WEATHER", titles[1::-1]), ("oslo", titles[:1]), ("ÄRGER", titles[1:2]),
        ("żÓŁ", titles[2:3]), ("oslo, weather!", titles[:1]), ("weather paris", []), ("%", []), ("w", titles[1::-1]),
    ):  # fmt: skip
        body = {"metadata": {"owner": owner}, "text": text}
        answer = http.post("/threads/search", json=body)
        assert [each["metadata"]["title"] for each in answer.json()] == found, text
        assert answer.headers["x-pagination-total"] == str(len(found))
        assert http.post("/threads/count", json=body).json() == len(found)
        one = http.post("/threads/search", json={**body, "limit": 1}).json()
        assert [each["metadata"]["title"] for each in one] == found[:1]
        sorted_by = http.post("/threads/search", json={**body, "sort_by": "created_at", "sort_order": "asc"}).json()
        assert [each["metadata"]["title"] for each in sorted_by] == found[::-1]
    for text in ("", None):
        assert http.post("/threads/count", json={"metadata": {"owner": owner}, "text": text}).json() == 8


def found_by(http, text, **more):
    answer = http.post("/threads/search", json={"text": text, "select": ["thread_id", "label"], **more})
    assert answer.status_code == 200, answer.text
    return {each["thread_id"]: each["label"] for each in answer.json()}


def say(thread, *texts):
    thread.run("echo", input={"messages": [{"type": "human", "content": text} for text in texts]})


def test_search_covers_messages(http):
    mark = "m" + uuid.uuid4().hex[:12]
    first, other = Thread(http), Thread(http)
    say(first, f"  A {mark} scarf\nin ÉCRU, Ἀθήνα")
    say(other, f"{mark}er: 織機で布を織る", "Second")
    assert found_by(http, mark) == {
        first.id: f"A {mark} scarf in ÉCRU, Ἀθήνα",
        other.id: f"{mark}er: 織機で布を織る",
    }
    assert list(found_by(http, f"écru {mark.upper()}")) == [first.id]
    for text in ("布を織", "織る", "る"):
        assert list(found_by(http, f"{mark} {text}")) == [other.id], text
    assert found_by(http, f"{mark} 織布") == {}
    assert list(found_by(http, f"{mark} you said scarf")) == [first.id]  # the reply is indexed too
    say(first, f"{mark}x follows")
    assert list(found_by(http, f"{mark}x")) == [first.id]


def test_a_search_finds_threads_that_the_indexer_has_just_taken(http):
    """Other threads keep the indexer busy, so that it takes the wanted one at any moment."""
    is_over = threading.Event()

    def make_others():
        with httpx.Client(base_url=http.base_url, timeout=60) as client:
            while not is_over.is_set():
                Thread(client, metadata={"title": "another"})

    maker = threading.Thread(target=make_others)
    maker.start()
    try:
        for _ in range(60):
            mark = "b" + uuid.uuid4().hex[:12]
            made = [Thread(http, metadata={"title": f"{mark} {number}"}).id for number in range(3)]
            assert set(found_by(http, mark)) == set(made)
    finally:
        is_over.set()
        maker.join()


def test_search_does_not_find_removed_messages(http):
    mark = "r" + uuid.uuid4().hex[:12]
    gone, changed = Thread(http), Thread(http, metadata={"title": f"{mark} title"})
    say(gone, f"{mark} one")
    say(changed, "two")
    assert set(found_by(http, mark)) == {gone.id, changed.id}
    gone.ask("DELETE", gone.path(""), status=204)
    changed.ask("PATCH", changed.path(""), json={"metadata": {"title": "Another"}})
    assert found_by(http, mark) == {}
    messages = changed.ask("GET", changed.path("/state"))["values"]["messages"]
    remove = [{"type": "remove", "id": each["id"], "content": ""} for each in messages]
    changed.ask("POST", changed.path("/state"), json={"values": {"messages": remove}})
    assert changed.id not in found_by(http, "two", ids=[changed.id])


def test_a_label_exists_before_the_first_run_ends(http):
    thread = Thread(http)
    text = f"Label {uuid.uuid4().hex}"
    body = {"assistant_id": "echo", "input": {"messages": {"role": "user", "content": text}}, "after_seconds": 60}
    thread.ask("POST", thread.path("/runs"), json=body)
    [found] = http.post("/threads/search", json={"ids": [thread.id], "select": ["label"]}).json()
    assert found == {"label": text}
    assert "label" not in http.post("/threads/search", json={"ids": [thread.id]}).json()[0]


def test_pages_in_the_order_of_change(http):
    made = [Thread(http).id for _ in range(4)]
    http.patch(f"/threads/{made[1]}", json={"metadata": {"again": True}})
    newest = [made[1], made[3], made[2], made[0]]
    body = {"sort_by": "updated_at", "select": ["thread_id"]}
    for offset, limit in ((0, 4), (0, 1), (1, 2), (3, 1)):
        answer = http.post("/threads/search", json={**body, "offset": offset, "limit": limit})
        assert ids(answer) == newest[offset : offset + limit]
        assert int(answer.headers["x-pagination-total"]) == http.post("/threads/count", json={}).json()
    # The tests share a server, which may have more threads than one page holds.
    offset = http.post("/threads/count", json={}).json() - 4
    last = ids(http.post("/threads/search", json={**body, "sort_order": "asc", "offset": offset, "limit": 4}))
    assert last == newest[::-1]


def test_usage(http):
    thread = Thread(http)
    show = partial(thread.ask, "GET", thread.path(""), params={"include": "usage"})
    assert show()["usage"] == {"bytes": 0, "checkpoints": 0}
    thread.say("echo", "one")
    first = show()["usage"]
    thread.say("echo", "two" * 1000)
    second = show()["usage"]
    assert first["checkpoints"] == 3 and second["checkpoints"] == 6 and second["bytes"] > first["bytes"] > 100
    assert "usage" not in thread.record() and "ttl" not in show()
    both = thread.ask("GET", thread.path(""), params={"include": "usage,ttl"})
    assert both["usage"] == second and "ttl" in both
    found = http.post("/threads/search", json={"ids": [thread.id], "select": ["thread_id", "usage"]}).json()
    assert found == [{"thread_id": thread.id, "usage": second}]


def test_search_by_id(http, library):
    owner, made = library
    wanted = [made[3], made[1], made[3].upper(), str(uuid.uuid4())]
    found = find(http, ids=wanted)
    assert ids(found) == [made[3], made[1]] and found.headers["x-pagination-total"] == "2"
    assert ids(find(http, ids=wanted, metadata={"n": 1})) == [made[1]]
    assert ids(find(http, ids=wanted, status="error")) == []
    assert ids(find(http, ids=wanted, limit=1, offset=1)) == [made[1]]
    assert ids(find(http, ids=[])) == []


@pytest.mark.parametrize("key", ["thread_id", "status", "created_at", "updated_at", "state_updated_at"])
def test_search_sorts(http, library, key):
    owner, made = library
    everything = find(http, metadata=owner).json()
    rising = sorted(everything, key=lambda each: (each[key], each["thread_id"]))
    assert find(http, metadata=owner, sort_by=key, sort_order="asc").json() == rising
    assert find(http, metadata=owner, sort_by=key).json() == rising[::-1]
    page = find(http, metadata=owner, sort_by=key, sort_order="asc", limit=2, offset=1)
    assert page.json() == rising[1:3]
    assert page.headers["x-pagination-total"] == "5" and page.headers["x-pagination-next"] == "3"


def check_pages(http, filters):
    total = int(find(http, **filters).headers["x-pagination-total"])
    assert total == http.post("/threads/count", json=filters).json() >= 5
    first = find(http, **filters, limit=2)
    second = find(http, **filters, limit=2, offset=2)
    assert ids(first) + ids(second) == ids(find(http, **filters, limit=4))
    assert first.headers["x-pagination-total"] == second.headers["x-pagination-total"] == str(total)
    assert first.headers["x-pagination-next"] == "2" and second.headers["x-pagination-next"] == "4"
    last = find(http, **filters, limit=10, offset=total - 1)
    assert len(ids(last)) == 1 and "x-pagination-next" not in last.headers
    assert ids(find(http, **filters, offset=total)) == []


def test_search_in_pages(http, library):
    check_pages(http, {"metadata": library[0]})


def test_search_for_everything(own_server):
    """A server on which no other test creates or deletes threads."""
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        for _ in range(11):
            Thread(http)
        check_pages(http, {})
        assert len(http.post("/threads/search").json()) == 10
        assert http.post("/threads/count").json() == http.post("/threads/count", content=b"null").json() == 11


def test_search_selects(http, library):
    owner, made = library
    for select in (["thread_id"], ["values", "status"], sorted(MEMBERS)):
        [found] = find(http, metadata={**owner, "n": 1}, select=select).json()
        assert set(found) == set(select)
    [found] = find(http, metadata={**owner, "n": 1}, select=["thread_id", "ttl", "context"]).json()
    assert found == {"thread_id": made[1], "ttl": None}


def test_search_extracts(http, library):
    owner, made = library
    paths = {
        "last": "values.messages[-1].content",
        "first": "values.messages[0].type",
        "n": "metadata.n",
        "deep": 'metadata["deep"].a[1]',
        "status": "status",
        "none": "values.messages[99]",
    }
    [found] = find(http, metadata={**owner, "n": 0}, select=["thread_id"], extract=paths).json()
    assert found == {
        "thread_id": made[0],
        "extracted": {
            "last": "hi", "first": "human", "n": 0, "deep": "x", "status": "interrupted", "none": None,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": []},
        {"metadata": "x"},
        {"values": 1},
        {"status": "asleep"},
        {"status": 1},
        {"text": 1},
        {"text": ["x"]},
        {"text": "x" * 1001},
        {"ids": "x"},
        {"ids": ["x"]},
        {"ids": [1]},
        {"ids": [str(uuid.UUID(int=1))] * 1001},
        {"limit": 0},
        {"limit": 1001},
        {"limit": "10"},
        {"limit": 1.5},
        {"offset": -1},
        {"offset": []},
        {"sort_by": "colour"},
        {"sort_by": 1},
        {"sort_order": "sideways"},
        {"select": "thread_id"},
        {"select": [1]},
        {"select": ["colour"]},
        {"extract": []},
        {"extract": {"a": 1}},
        {"extract": {"a": ""}},
        {"extract": {"a": "values.["}},
        {"extract": {"a": "colour.of.it"}},
        {"extract": {f"p{n}": "values" for n in range(11)}},
    ],
)
def test_search_refuses(http, body):
    refused(http, "POST", "/threads/search", 422, json=body)


@pytest.mark.parametrize("body", [{"metadata": 1}, {"values": []}, {"status": "asleep"}, {"text": {}}])
def test_count_refuses(http, body):
    refused(http, "POST", "/threads/count", 422, json=body)


@pytest.mark.parametrize("path", ["/threads/search", "/threads/count"])
def test_search_refuses_invalid_json(http, path):
    refuses_what_is_not_json(http, "POST", path, needs_body=False)
    refuses_too_much(http, "POST", path)


# ---- settings


def test_a_standard_ttl_and_errors_as_text():
    options = ["--ttl-threads", "90", "--errors-plain-text"]
    with Server(options=options) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = Thread(http)
        ttl = thread.ask("GET", thread.path(""), params={"include": "ttl"})["ttl"]
        assert ttl["ttl"] == 90 and ttl["strategy"] == "delete"
        unknown = uuid.uuid4()
        answer = http.get(f"/threads/{unknown}")
        assert answer.status_code == 404 and answer.text == f"Thread with ID {unknown} not found"
        assert answer.headers["content-type"].startswith("text/plain")
