"""A server that is killed or stopped and restarts with the same database."""

import httpx
import pytest
from clients import until
from gate import Gate
from plain import Thread, events, human, texts

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")


@pytest.fixture
def http(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as client:
        yield client


def crash(server):
    server.kill()
    server.restart()


def status(thread, run):
    return thread.ask("GET", thread.path(f"/runs/{run['run_id']}"))["status"]


def test_everything_is_still_there(own_server, http):
    assistant = http.post("/assistants", json={"graph_id": "echo", "name": "kept"}).json()
    thread = Thread(http, metadata={"kept": True})
    thread.say(assistant["assistant_id"], "one")
    http.put("/store/items", json={"namespace": ["a"], "key": "k", "value": {"n": 1}})
    cron = http.post("/runs/crons", json={"assistant_id": "echo", "schedule": "0 0 1 1 *"}).json()
    before = (thread.record(), thread.state(), thread.history(), thread.ask("GET", thread.path("/runs")))
    for end in (own_server.kill, own_server.stop):
        end()
        own_server.restart()
        assert http.get(f"/assistants/{assistant['assistant_id']}").json() == assistant
        assert (thread.record(), thread.state(), thread.history(), thread.ask("GET", thread.path("/runs"))) == before
        assert http.get("/store/items?namespace=a&key=k").json()["value"] == {"n": 1}
        assert http.post("/runs/crons/search", json={}).json() == [cron]
    assert texts(thread.say(assistant["assistant_id"], "two"))[::2] == ["one", "two"]


def test_a_question_waits_for_its_answer(own_server, http):
    thread = Thread(http)
    [asked] = thread.say("approval", "may I?")["__interrupt__"]
    crash(own_server)
    assert thread.record()["status"] == "interrupted"
    assert [each["id"] for each in thread.state()["tasks"][0]["interrupts"]] == [asked["id"]]
    assert thread.run("approval", command={"resume": {asked["id"]: "yes"}})["verdict"] == "yes"


async def test_a_run_continues_from_its_checkpoint(own_server, http):
    thread = Thread(http)

    async def waits():
        return gate.arrived and thread.state()["next"] == ["gate"]

    with Gate() as gate:
        run = thread.ask("POST", thread.path("/runs"), json=gate.body())
        await until(waits)
        crash(own_server)
        gate.open()
        assert thread.ask("GET", thread.path(f"/runs/{run['run_id']}/join"))["log"] == ["before", "through", "after"]
    assert status(thread, run) == "success" and thread.record()["status"] == "idle"
    first_step = [state for state in thread.history() if state["metadata"]["source"] == "input"]
    assert len(first_step) == 1  # it did not start over


def test_runs_that_wait_are_not_forgotten(own_server, http):
    thread = Thread(http)
    runs = [
        thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": ms}})
        for ms in (800, 1, 2)
    ]
    crash(own_server)
    thread.ask("GET", thread.path(f"/runs/{runs[-1]['run_id']}/join"))
    assert [status(thread, run) for run in runs] == ["success"] * 3
    assert thread.state()["values"]["log"] == ["before", "slept", "after"] * 3


def test_a_run_for_later_keeps_its_time(own_server, http):
    soon, late = Thread(http), Thread(http)
    runs = [
        thread.ask(
            "POST", thread.path("/runs"), json={"assistant_id": "echo", "input": human("hi"), "after_seconds": after}
        )
        for thread, after in ((soon, 1), (late, 3600))
    ]
    crash(own_server)
    assert texts(soon.ask("GET", soon.path(f"/runs/{runs[0]['run_id']}/join"))) == ["hi", "You said: hi"]
    assert status(late, runs[1]) == "pending" and late.record()["status"] == "busy"


async def test_a_run_that_kills_the_server_fails(own_server, http):
    """At most three attempts without progress; then the run has failed and the thread is idle
    again."""
    thread = Thread(http)
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})

    async def running():
        """Waits until all checkpoints before the nap are stored: one that a later attempt stores
        counts as progress."""
        return status(thread, run) == "running" and thread.state()["next"] == ["sleep"]

    for _ in range(3):
        await until(running)
        crash(own_server)

    async def given_up():
        return status(thread, run) == "error"

    await until(given_up)
    assert thread.record()["status"] == "error"
    assert thread.run("loop", input={"count": 0})["count"] == 5


def test_a_stream_is_picked_up_after_a_restart(own_server, http):
    thread = Thread(http)
    body = {"assistant_id": "echo", "input": human("one"), "stream_resumable": True}
    seen = events(http.post(thread.path("/runs/stream"), json=body).text)
    run_id = seen[0][1]["run_id"]
    crash(own_server)
    path = thread.path(f"/runs/{run_id}/stream")
    assert events(http.get(path, headers={"Last-Event-ID": "-1"}).text) == seen
    assert events(http.get(path, headers={"Last-Event-ID": seen[1][2]}).text) == seen[2:]
    more = events(http.post(thread.path("/runs/stream"), json=body).text)
    assert int(more[0][2]) > int(seen[-1][2])  # ids keep growing


def read_until(http, method, path, is_enough, **options):
    """Returns the events of a stream, up to where there are enough of them."""
    text = ""
    with http.stream(method, path, **options) as answer:
        assert answer.status_code == 200, answer.read()
        for part in answer.iter_text():
            text += part
            found = events(text[: text.rfind("\n\n") + 2])
            if is_enough(found):
                return found
    raise AssertionError(f"not enough: {text}")


@pytest.mark.parametrize("resumable", [True, False])
def test_readers_see_that_a_run_restarts(own_server, http, resumable):
    """With the last event id: a stream gets the next attempt, and in stored events the state from
    which it resumes."""
    thread = Thread(http)
    body = {
        "assistant_id": "nap", "input": {"ms": 600_000}, "stream_mode": ["values"], "stream_resumable": resumable,
        "on_disconnect": "continue",
    }  # fmt: skip
    seen = read_until(http, "POST", thread.path("/runs/stream"), lambda found: len(found) >= 3, json=body)
    first, run, last = seen[0][1], seen[0][1]["run_id"], seen[-1][2]
    assert [event for event, _, _ in seen] == ["metadata", "values", "values"]
    for attempt in (2, 3):
        crash(own_server)
        again = ("metadata", {**first, "attempt": attempt})

        def has_begun(found, again=again):
            places = [i for i, each in enumerate(found) if each[:2] == again]
            return places and len(found) > places[0] + resumable

        headers = {"Last-Event-ID": last}
        more = read_until(http, "GET", thread.path(f"/runs/{run}/stream"), has_begun, headers=headers)
        numbers = [int(number) for _, _, number in more]
        assert numbers == sorted(set(numbers)) and numbers[0] > int(last)
        [begun] = [each for each in more if each[0] == "metadata"]
        assert {event for event, _, _ in more} <= {"metadata", "values"} and begun[:2] == again
        params = {"stream_mode": "lifecycle"}
        [told] = read_until(http, "GET", thread.path("/stream"), len, params=params, headers=headers)
        assert told == begun
        last = more[-1][2]
    thread.ask("POST", thread.path(f"/runs/{run}/cancel?wait=1"))


def each_event(parts):
    """Yields the data of events of an endless stream."""
    text = ""
    for part in parts:
        *whole, text = (text + part).split("\n\n")
        for frame in whole:
            yield from (data for _, data, _ in events(frame))


def test_other_tabs_learn_of_runs_at_once(own_server, http):
    """By a stream with only the starts and ends of runs, and by the lists of pending and running
    runs."""
    thread = Thread(http)

    def listed(status):
        return [run["run_id"] for run in thread.ask("GET", thread.path("/runs"), params={"status": status})]

    with (
        httpx.Client(base_url=own_server.url, timeout=60) as other,
        other.stream("GET", thread.path("/stream"), params={"stream_mode": "lifecycle"}) as stream,
    ):
        told = each_event(stream.iter_text())
        for resumable in (False, True):
            body = {"assistant_id": "nap", "input": {"ms": 600_000}, "stream_resumable": resumable}
            run = thread.ask("POST", thread.path("/runs"), json=body)["run_id"]
            begun = next(told)
            assert begun["run_id"] == run and begun["attempt"] == 1 and begun["checkpoint_ns"]
            waiting = thread.ask("POST", thread.path("/runs"), json={**body, "input": {"ms": 1}})["run_id"]
            assert listed("running") == [run] and listed("pending") == [waiting]
            thread.ask("POST", thread.path(f"/runs/{run}/cancel?wait=1"))
            assert next(told) == {"status": "run_done", "run_id": run}
            assert next(told)["run_id"] == waiting
            assert next(told) == {"status": "run_done", "run_id": waiting}
            thread.ask("GET", thread.path(f"/runs/{waiting}/join"))
            assert listed("running") == listed("pending") == [] and listed("success")[0] == waiting


def test_a_stopping_server_completes_open_responses(own_server, http):
    """SIGTERM while a run streams: the run is not lost."""
    thread = Thread(http)
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "slow", "input": human("hi")})
    own_server.stop()
    own_server.restart()
    values = thread.ask("GET", thread.path(f"/runs/{run['run_id']}/join"))
    assert texts(values)[-1] == "one two three four five six seven eight nine ten"


def test_an_answer_of_a_room_comes_once(own_server, http):
    thread = Thread(http)
    asked = {"content": "count", "mentions": ["slow"]}
    [run] = thread.ask("POST", thread.path("/room/messages"), 201, json=asked)["runs"]
    crash(own_server)
    thread.ask("GET", thread.path(f"/runs/{run['run_id']}/join"))
    first, answer = thread.ask("GET", thread.path("/room/messages"))
    assert (answer["state"], answer["run_id"], answer["reply_to"]) == ("ok", run["run_id"], first["id"])
    crash(own_server)
    assert thread.ask("GET", thread.path("/room/messages")) == [first, answer]
    assert thread.ask("GET", thread.path("/room"))["last_seq"] == 2
