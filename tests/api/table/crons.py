"""/runs/crons, endpoint by endpoint: responses, refusals, and firing."""

import datetime
import sqlite3
import time
import uuid

import httpx
import pytest
from listener import Listener
from plain import Thread
from server import Server
from table import refused, refuses_too_much, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("has no crons")
YEARLY = "0 0 1 1 *"
CRON = {
    "cron_id", "assistant_id", "thread_id", "on_run_completed", "end_time", "schedule", "timezone", "created_at",
    "updated_at", "payload", "user_id", "next_run_date", "metadata", "enabled",
}  # fmt: skip


@pytest.fixture
def owner():
    return {"owner": str(uuid.uuid4())}


@pytest.fixture(scope="module", autouse=True)
def forgotten(server):
    """Deletes the crons: at midnight, and at other times, they would disturb later tests."""
    yield
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for cron in search(http, limit=1000):
            ask(http, "DELETE", f"/runs/crons/{cron['cron_id']}", status=204)
        assert search(http) == []


def ask(http, method, path, status=200, **options):
    answer = http.request(method, path, **options)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json() if answer.content else None


def create(http, path="/runs/crons", **body):
    return ask(http, "POST", path, json={"assistant_id": "loop", "schedule": YEARLY, **body})


def patch(http, cron, **body):
    return ask(http, "PATCH", f"/runs/crons/{cron['cron_id']}", json=body)


def search(http, **body):
    return ask(http, "POST", "/runs/crons/search", json=body)


def moment(text):
    return datetime.datetime.fromisoformat(text)


# ---- POST /runs/crons, /threads/{thread_id}/runs/crons


def test_a_new_cron(http, owner):
    cron = create(http, metadata=owner, input={"count": 3})
    assert set(cron) == CRON
    assistant = ask(http, "GET", "/assistants/loop")["assistant_id"]
    assert cron["assistant_id"] == assistant and cron["metadata"] == owner and cron["schedule"] == YEARLY
    assert cron["enabled"] is True and cron["on_run_completed"] == "delete"
    assert cron["thread_id"] is cron["end_time"] is cron["timezone"] is cron["user_id"] is None
    assert cron["created_at"] == cron["updated_at"]
    assert cron["payload"] == {
        "assistant_id": assistant, "input": {"count": 3}, "metadata": owner,
        "config": {"configurable": {"cron_id": cron["cron_id"]}},
    }  # fmt: skip
    assert search(http, metadata=owner) == [cron]


def test_all_members(http, owner):
    run = {
        "input": {"count": 0}, "context": {"a": 1}, "webhook": "http://127.0.0.1:9/x", "interrupt_before": ["step"],
        "interrupt_after": "*", "multitask_strategy": "interrupt", "stream_mode": ["values"], "stream_subgraphs": True,
        "stream_resumable": True, "durability": "sync",
    }  # fmt: skip
    config = {"tags": ["t"], "recursion_limit": 7, "configurable": {"x": [1], "cron_id": "not this one"}}
    cron = create(
        http, **run, config=config, metadata=owner, timezone="Europe/Berlin", end_time="2031-01-01T00:00:00+01:00",
        enabled=False, on_run_completed="keep", unknown=1,
    )  # fmt: skip
    assert {name: cron["payload"][name] for name in run} == run
    assert cron["payload"]["config"] == {**config, "configurable": {"x": [1], "cron_id": cron["cron_id"]}}
    assert moment(cron["end_time"]) == datetime.datetime(2030, 12, 31, 23, tzinfo=datetime.timezone.utc)
    assert (cron["timezone"], cron["enabled"], cron["on_run_completed"]) == ("Europe/Berlin", False, "keep")
    assert cron["next_run_date"] is None  # it is not enabled


def test_null_is_nothing(http):
    nothing = {
        name: None
        for name in (
            "timezone", "end_time", "enabled", "input", "metadata", "config", "context", "webhook", "interrupt_before",
            "interrupt_after", "on_run_completed", "multitask_strategy", "stream_mode", "durability",
        )
    }  # fmt: skip
    cron = create(http, **nothing)
    assert cron["metadata"] == {} and cron["enabled"] is True
    assert set(cron["payload"]) == {"assistant_id", "input", "config", "metadata"}


def test_of_a_thread(http):
    thread = Thread(http)
    cron = create(http, path=thread.path("/runs/crons"))
    assert cron["thread_id"] == thread.id and cron["on_run_completed"] is None


def test_times(http, owner):
    cron = create(http, schedule="30 9 * * *", timezone="Asia/Tokyo", metadata=owner)
    due = moment(cron["next_run_date"])
    assert (due.utcoffset(), due.hour, due.minute) == (datetime.timedelta(0), 0, 30)
    assert create(http, schedule="@daily")["next_run_date"].endswith("T00:00:00.000000+00:00")
    assert create(http, end_time="2001-01-01")["next_run_date"] is None  # ended before it began


WRONG = [
    ({"schedule": None}, "schedule"),
    ({"schedule": ""}, "schedule"),
    ({"schedule": 5}, "schedule"),
    ({"schedule": "never"}, "schedule"),
    ({"schedule": "* * * *"}, "schedule"),
    ({"schedule": "61 * * * *"}, "schedule"),
    ({"schedule": "0 0 30 2 *"}, "schedule"),
    ({"schedule": "*" * 5000}, "schedule"),
    ({"timezone": "Moon/Tranquility"}, "Moon/Tranquility"),
    ({"timezone": "../../etc/passwd"}, "time zone"),
    ({"timezone": 1}, "timezone"),
    ({"end_time": "soon"}, "end_time"),
    ({"end_time": 5}, "end_time"),
    ({"enabled": "yes"}, "enabled"),
    ({"on_run_completed": "burn"}, "on_run_completed"),
    ({"metadata": []}, "metadata"),
    ({"config": []}, "config"),
    ({"config": {"configurable": 1}}, "configurable"),
    ({"config": {"recursion_limit": 0}}, "recursion_limit"),
    ({"webhook": 1}, "webhook"),
    ({"webhook": "ftp://example.com"}, "webhook"),
    ({"webhook": "http://user:secret@example.com"}, "webhook"),
    ({"interrupt_before": "step"}, "interrupt_before"),
    ({"multitask_strategy": "queue"}, "multitask_strategy"),
    ({"stream_mode": "everything"}, "stream"),
    ({"durability": "eternal"}, "durability"),
]


@pytest.mark.parametrize(
    "body, named", [*WRONG, ({"assistant_id": None}, "assistant_id"), ({"assistant_id": 1}, "assistant_id")]
)
def test_create_refuses(http, owner, body, named):
    whole = {"assistant_id": "loop", "schedule": YEARLY, "metadata": owner, **body}
    refused(http, "POST", "/runs/crons", 422, named, json=whole)
    refused(http, "POST", Thread(http).path("/runs/crons"), 422, named, json=whole)
    assert search(http, metadata=owner) == []


def test_unknown_assistants_and_threads(http, unknown):
    body = {"schedule": YEARLY, "assistant_id": "nobody"}
    refused(http, "POST", "/runs/crons", 404, 'No assistant found for "nobody"', json=body)
    refused(http, "POST", "/runs/crons", 404, unknown, json={**body, "assistant_id": unknown})
    path = f"/threads/{unknown}/runs/crons"
    refused(http, "POST", path, 404, f"Thread with ID {unknown} not found", json={**body, "assistant_id": "loop"})
    refused(http, "POST", "/threads/no-uuid/runs/crons", 422, "thread_id", json={**body, "assistant_id": "loop"})


def test_metadata_must_be_mergeable(http):
    content = '{"assistant_id":"loop","schedule":"0 0 1 1 *","metadata":{"a":1,"a":2}}'
    refused(http, "POST", "/runs/crons", 422, content=content)


# ---- PATCH, DELETE /runs/crons/{cron_id}


def test_absent_members_stay_unchanged(http, owner):
    cron = create(http, input={"count": 1}, metadata=owner, timezone="Asia/Tokyo", end_time="2031-01-01T00:00:00Z")
    same = patch(http, cron, schedule=None, timezone=None, enabled=None, metadata=None, config=None, unknown=1)
    assert {**same, "updated_at": cron["updated_at"]} == cron and same["updated_at"] > cron["updated_at"]
    assert patch(http, cron, end_time=None)["end_time"] is None
    assert patch(http, cron)["end_time"] is None


def test_changes(http, owner):
    cron = create(http, input={"count": 1}, metadata={**owner, "a": 1}, config={"tags": ["x"]})
    changed = patch(http, cron, metadata={"a": 2, "b": {"c": 3}}, input={"count": 2}, schedule="15 10 * * *")
    assert changed["metadata"] == changed["payload"]["metadata"] == {**owner, "a": 2, "b": {"c": 3}}
    assert changed["payload"]["input"] == {"count": 2} and changed["schedule"] == "15 10 * * *"
    assert changed["payload"]["config"] == {"tags": ["x"], "configurable": {"cron_id": cron["cron_id"]}}
    assert moment(changed["next_run_date"]).minute == 15 and changed["created_at"] == cron["created_at"]
    changed = patch(http, cron, config={"configurable": {"y": 1}}, input=None, on_run_completed="keep")
    assert changed["payload"]["config"] == {"configurable": {"y": 1, "cron_id": cron["cron_id"]}}
    assert changed["payload"]["input"] is None and changed["on_run_completed"] == "keep"
    assert search(http, metadata=owner) == [changed]


def test_switching_off_and_on(http):
    cron = create(http)
    assert patch(http, cron, enabled=False)["next_run_date"] is None
    assert patch(http, cron, metadata={"x": 1})["next_run_date"] is None
    assert patch(http, cron, enabled=True)["next_run_date"] == cron["next_run_date"]
    assert patch(http, cron, end_time="2001-01-01")["next_run_date"] is None
    assert patch(http, cron, end_time=None)["next_run_date"] == cron["next_run_date"]


@pytest.mark.parametrize(
    "body, named", [each for each in WRONG if each[0] not in ({"schedule": None}, {"schedule": ""})]
)
def test_patch_refuses(http, owner, body, named):
    cron = create(http, metadata=owner)
    refused(http, "PATCH", f"/runs/crons/{cron['cron_id']}", 422, named, json=body)
    assert search(http, metadata=owner) == [cron]


def test_delete(http, owner):
    cron = create(http, metadata=owner)
    path = f"/runs/crons/{cron['cron_id']}"
    answer = http.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    refused(http, "DELETE", path, 404, "Cron not found")
    refused(http, "PATCH", path, 404, "Cron not found", json={})
    assert search(http, metadata=owner) == []


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_unknown_crons(http, unknown, method):
    body = {"json": {}} if method == "PATCH" else {}
    refused(http, method, f"/runs/crons/{unknown}", 404, "Cron not found", **body)
    refused(http, method, "/runs/crons/no-uuid", 422, "cron_id", **body)


# ---- search and count


@pytest.fixture
def three(http, owner):
    thread = Thread(http)
    first = create(http, metadata={**owner, "n": [1, 2]}, schedule="0 0 3 1 *")
    second = create(http, path=thread.path("/runs/crons"), metadata=owner, assistant_id="echo", schedule="0 0 2 1 *")
    third = create(http, metadata=owner, enabled=False, end_time="2030-01-01")
    yield thread, first, second, third
    for cron in search(http, metadata=owner, limit=100):
        ask(http, "DELETE", f"/runs/crons/{cron['cron_id']}", status=204)


def test_search(http, owner, three):
    thread, first, second, third = three

    def found(**body):
        ids = [cron["cron_id"] for cron in search(http, metadata={**owner, **body.pop("more", {})}, **body)]
        return [[first["cron_id"], second["cron_id"], third["cron_id"]].index(each) + 1 for each in ids]

    assert found() == [3, 2, 1]  # the newest first
    for sort, wanted in [
        ("created_at", [1, 2, 3]),
        ("updated_at", [1, 2, 3]),
        ("cron_id", [1, 2, 3]),
        ("next_run_date", [2, 1, 3]),  # a cron that never fires is last
        ("thread_id", [2, 1, 3]),
    ]:
        assert found(sort_by=sort, sort_order="asc") == wanted, sort
        assert found(sort_by=sort, sort_order="desc") == wanted[::-1], sort
    assert found(sort_by="end_time", sort_order="asc")[0] == 3
    assert found(sort_by="assistant_id", sort_order="asc") in ([2, 1, 3], [1, 3, 2])
    assert found(more={"n": [2]}) == [1] and found(more={"n": 3}) == []
    assert found(enabled=True) == [2, 1] and found(enabled=False) == [3]
    assert found(assistant_id="loop") == [3, 1] and found(assistant_id=second["assistant_id"]) == [2]
    assert found(assistant_id=str(uuid.uuid4())) == [] and found(thread_id=thread.id) == [2]
    assert found(limit=1, offset=1) == [2] and found(offset=3) == []


def test_pages(http, owner, three):
    answer = http.post("/runs/crons/search", json={"metadata": owner, "limit": 2})
    assert (answer.headers["x-pagination-total"], answer.headers["x-pagination-next"]) == ("3", "2")
    answer = http.post("/runs/crons/search", json={"metadata": owner, "limit": 2, "offset": 2})
    assert answer.headers["x-pagination-total"] == "3" and "x-pagination-next" not in answer.headers


def test_select(http, owner, three):
    [found] = search(http, metadata=owner, enabled=False, select=["schedule", "cron_id"])
    assert found == {"cron_id": three[3]["cron_id"], "schedule": YEARLY}


def test_count(http, owner, three):
    for body, wanted in [
        ({}, 3),
        ({"enabled": True}, 2),
        ({"thread_id": three[0].id}, 1),
        ({"assistant_id": "echo"}, 1),
    ]:
        assert ask(http, "POST", "/runs/crons/count", json={"metadata": owner, **body}) == wanted
    assert ask(http, "POST", "/runs/crons/count") >= 3


@pytest.mark.parametrize(
    "body, named",
    [
        ({"metadata": 1}, "metadata"),
        ({"assistant_id": 1}, "assistant_id"),
        ({"thread_id": "x"}, "thread_id"),
        ({"enabled": "yes"}, "enabled"),
    ],
)
def test_filters_refuse(http, body, named):
    refused(http, "POST", "/runs/crons/search", 422, named, json=body)
    refused(http, "POST", "/runs/crons/count", 422, named, json=body)


@pytest.mark.parametrize(
    "body, named",
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"offset": -1}, "offset"),
        ({"sort_by": "colour"}, "sort_by"),
        ({"sort_order": "up"}, "sort_order"),
        ({"select": "cron_id"}, "select"),
        ({"select": ["colour"]}, "colour"),
    ],
)
def test_search_refuses(http, body, named):
    refused(http, "POST", "/runs/crons/search", 422, named, json=body)


def test_bodies_must_be_json(http):
    cron = create(http)
    refuses_what_is_not_json(http, "POST", "/runs/crons")
    refuses_what_is_not_json(http, "POST", Thread(http).path("/runs/crons"))
    refuses_what_is_not_json(http, "PATCH", f"/runs/crons/{cron['cron_id']}")
    for path in ("/runs/crons/search", "/runs/crons/count"):
        refuses_what_is_not_json(http, "POST", path, needs_body=False)


@pytest.mark.parametrize("path", ["/runs/crons", "/runs/crons/search", "/runs/crons/count"])
def test_bodies_may_be_too_large(http, path):
    refuses_too_much(http, "POST", path)


# ---- firing


def make_due(server: Server, *crons) -> None:
    """Makes crons due, as if their time had passed while no server was running."""
    server.stop()
    with sqlite3.connect(server.folder / "heddle.db") as database:
        for cron in crons:
            changed = database.execute("UPDATE crons SET next_at = 1000000 WHERE cron_id = ?", [cron["cron_id"]])
            assert changed.rowcount == 1
    database.close()
    server.restart()


def until(check):
    deadline = time.monotonic() + 60
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def ended(http, thread):
    def check():
        runs = ask(http, "GET", thread.path("/runs"))
        return runs if runs and all(run["status"] not in ("pending", "running") for run in runs) else None

    return until(check)


def test_a_missed_cron_fires_once(own_server):
    with Listener() as listener, httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        cron = create(
            http, path=thread.path("/runs/crons"), input={"count": 0}, metadata={"by": "clock"}, webhook=listener.url,
            config={"configurable": {"x": 1}},
        )  # fmt: skip
        make_due(own_server, cron)
        sent = listener.next()["body"]
        [run] = ended(http, thread)
        assert sent["run_id"] == run["run_id"] and sent["values"]["count"] == 5
        assert run["status"] == "success" and run["metadata"]["by"] == "clock"
        configurable = run["kwargs"]["config"]["configurable"]
        assert configurable["cron_id"] == cron["cron_id"] and configurable["x"] == 1
        [after] = search(http)
        assert after["next_run_date"] == cron["next_run_date"]  # and not once for each missed time
        assert "cron_id" not in thread.record()["config"]["configurable"]  # it belongs to that run, not to the thread
        own_server.stop()
        own_server.restart()
        assert len(ask(http, "GET", thread.path("/runs"))) == 1


def test_stateless_threads_are_deleted_or_kept(own_server):
    with Listener() as listener, httpx.Client(base_url=own_server.url, timeout=60) as http:
        options = {"input": {"count": 0}, "webhook": listener.url}
        deleted = create(http, **options)
        kept = create(http, **options, on_run_completed="keep")
        make_due(own_server, deleted, kept)
        sent = {}
        for _ in range(2):
            body = listener.next()["body"]
            sent[body["kwargs"]["config"]["configurable"]["cron_id"]] = body
        thread = ask(http, "GET", f"/threads/{sent[kept['cron_id']]['thread_id']}")
        assert thread["values"]["count"] == 5
        gone = f"/threads/{sent[deleted['cron_id']]['thread_id']}"
        until(lambda: http.get(gone).status_code == 404)


def test_a_disabled_cron_does_not_fire(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        threads = [Thread(http) for _ in range(3)]
        off, over, on = (create(http, path=each.path("/runs/crons"), input={"count": 0}) for each in threads)
        patch(http, off, enabled=False)
        patch(http, over, end_time="2002-01-01")
        make_due(own_server, off, over, on)
        ended(http, threads[2])
        assert ask(http, "GET", threads[0].path("/runs")) == ask(http, "GET", threads[1].path("/runs")) == []
        found = {cron["cron_id"]: cron["next_run_date"] for cron in search(http)}
        assert found == {off["cron_id"]: None, over["cron_id"]: None, on["cron_id"]: on["next_run_date"]}


def test_deleting_a_thread_deletes_its_crons(http, owner):
    threads = [Thread(http) for _ in range(3)]
    crons = [create(http, path=thread.path("/runs/crons"), metadata=owner) for thread in threads for _ in range(2)]
    free = create(http, metadata=owner)

    def left():
        return {cron["cron_id"] for cron in search(http, metadata=owner)}

    assert left() == {cron["cron_id"] for cron in [*crons, free]}
    ask(http, "DELETE", threads[0].path(""), status=204)
    assert left() == {cron["cron_id"] for cron in [*crons[2:], free]}
    ask(http, "POST", "/threads/prune", json={"thread_ids": [threads[1].id], "strategy": "delete"})
    assert left() == {cron["cron_id"] for cron in [*crons[4:], free]}
    ask(http, "POST", "/threads/prune", json={"thread_ids": [threads[2].id], "strategy": "keep_latest"})
    assert left() == {cron["cron_id"] for cron in [*crons[4:], free]}


def test_a_busy_agent_is_skipped_with_reject(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread, other = Thread(http), Thread(http)
        later = {"assistant_id": "loop", "input": {"count": 0}, "after_seconds": 600}
        busy = ask(http, "POST", thread.path("/runs"), json=later)
        reject = create(http, path=thread.path("/runs/crons"), multitask_strategy="reject")
        instead = create(http, path=other.path("/runs/crons"), multitask_strategy="interrupt", input={"count": 0})
        ask(http, "POST", other.path("/runs"), json=later)
        make_due(own_server, reject, instead)
        until(lambda: [run["status"] for run in ask(http, "GET", other.path("/runs"))] == ["success", "interrupted"])
        assert [run["run_id"] for run in ask(http, "GET", thread.path("/runs"))] == [busy["run_id"]]
        ask(http, "POST", thread.path(f"/runs/{busy['run_id']}/cancel?wait=1"))
