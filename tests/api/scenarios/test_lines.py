"""Agents of one thread are independent: each queues, waits and fails on its own line."""

import os
import threading
import uuid

import httpx
import pytest
from clients import until
from gate import Gate
from plain import Thread, human, texts
from server import Server

pytestmark = pytest.mark.beyond_peer("has one line for all agents")


def stores() -> dict[str, str | None]:
    """A database of SQLite, and a schema of PostgreSQL if there is a server."""
    found = {"sqlite": None}
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=lines_{uuid.uuid4().hex[:8]}"
    return found


STORES = stores()


@pytest.fixture(scope="module", params=STORES.values(), ids=STORES)
def server(request):
    with Server(store=request.param) as running:
        yield running


@pytest.fixture(params=STORES, ids=STORES)
def own_server(request):
    running = Server(store=request.param and STORES[request.param] and f"{STORES[request.param]}_own")
    try:
        yield running.start()
        running.stop()
    finally:
        running.remove()


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def thread(http):
    return Thread(http)


class Pair:
    """Two agents that wait at gates of their own."""

    def __init__(self, http):
        self.http = http
        self.a, self.b = self.agent(), self.agent()

    def agent(self, graph="gated") -> str:
        return self.http.post("/assistants", json={"graph_id": graph}).json()["assistant_id"]


@pytest.fixture
def pair(http):
    return Pair(http)


@pytest.fixture
def gates():
    with Gate() as first, Gate() as second:
        yield first, second


def start(thread, gate, agent, status=200, **more) -> dict:
    return thread.ask("POST", thread.path("/runs"), status, json={**gate.body(), "assistant_id": agent, **more})


def status(thread, run) -> str:
    return thread.ask("GET", thread.path(f"/runs/{run['run_id']}"))["status"]


def log(thread, agent) -> list[str]:
    return thread.state(assistant_id=agent)["values"].get("log", [])


async def arrived(*gates, count=1):
    async def all_there():
        return all(gate.arrived >= count for gate in gates)

    await until(all_there)


async def ended(thread, run, expected="success"):
    async def has_ended():
        return status(thread, run) not in ("pending", "running")

    await until(has_ended)
    assert status(thread, run) == expected


async def settled(thread) -> dict:
    async def is_idle():
        return thread.record()["status"] != "busy"

    await until(is_idle)
    return thread.record()


def found(http, thread, state) -> bool:
    """Whether search and count find the thread by this status."""
    body = {"status": state, "ids": [thread.id]}
    hits = http.post("/threads/search", json=body).json()
    mark = {"status": state, "metadata": {"mark": thread.id}}
    count = http.post("/threads/count", json=mark).json()
    assert len(hits) == count
    return bool(hits)


# ---- status and interrupts


def test_a_question_stays_open_while_another_agent_speaks(thread, pair, http):
    asker, echo = pair.agent("approval"), pair.agent("echo")
    thread.ask("PATCH", thread.path(""), json={"metadata": {"mark": thread.id}})
    [asked] = thread.say(asker, "may I?")["__interrupt__"]
    assert texts(thread.say(echo, "hi")) == ["hi", "You said: hi"]
    record = thread.record()
    assert record["status"] == "interrupted"
    assert [each["id"] for task in record["interrupts"].values() for each in task] == [asked["id"]]
    assert found(http, thread, "interrupted") and not found(http, thread, "idle")
    assert texts(thread.state()["values"]) == ["hi", "You said: hi"]
    assert thread.run(asker, command={"resume": "yes"})["verdict"] == "yes"
    record = thread.record()
    assert (record["status"], record["interrupts"]) == ("idle", {})
    assert found(http, thread, "idle")


def test_questions_of_two_agents_are_answered_one_by_one(thread, pair):
    first, second = pair.agent("approval"), pair.agent("approval")
    thread.say(first, "one")
    thread.say(second, "two")
    assert len(thread.record()["interrupts"]) == 2
    assert thread.run(first, command={"resume": "a"})["verdict"] == "a"
    record = thread.record()
    assert record["status"] == "interrupted" and len(record["interrupts"]) == 1
    assert thread.run(second, command={"resume": "b"})["verdict"] == "b"
    assert thread.record()["status"] == "idle"


async def test_the_question_is_listed_while_another_agent_runs(thread, pair, gates):
    asker = pair.agent("approval")
    thread.say(asker, "may I?")
    run = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    record = thread.record()
    assert record["status"] == "busy" and len(record["interrupts"]) == 1
    assert thread.run(asker, command={"resume": "yes"})["verdict"] == "yes"
    assert thread.record()["status"] == "busy"
    gates[0].open()
    await ended(thread, run)
    assert (await settled(thread))["interrupts"] == {}


def test_the_latest_agent_decides_between_error_and_idle(thread, pair, http):
    bad, good = pair.agent("failing"), pair.agent("echo")
    thread.ask("PATCH", thread.path(""), json={"metadata": {"mark": thread.id}})
    thread.run(bad, input={"log": []})
    assert thread.record()["status"] == "error" and found(http, thread, "error")
    thread.say(good, "hi")
    record = thread.record()
    assert (record["status"], record["error"]) == ("idle", None)
    thread.run(bad, input={"log": []})
    record = thread.record()
    assert record["status"] == "error" and "boom" in str(record["error"])


def test_a_question_is_shown_before_an_error(thread, pair):
    asker, bad = pair.agent("approval"), pair.agent("failing")
    thread.say(asker, "may I?")
    thread.run(bad, input={"log": []})
    assert thread.record()["status"] == "interrupted"
    thread.run(asker, command={"resume": "yes"})
    assert thread.record()["status"] == "idle"


def test_a_state_update_answers_only_its_own_line(thread, pair):
    asker, echo = pair.agent("approval"), pair.agent("echo")
    thread.say(asker, "may I?")
    thread.say(echo, "hi")
    thread.ask("POST", thread.path("/state"), json={"assistant_id": echo, "values": human("by hand")})
    assert thread.record()["status"] == "interrupted"
    body = {"assistant_id": asker, "values": {"verdict": "skip"}, "as_node": "reply"}
    thread.ask("POST", thread.path("/state"), json=body)
    record = thread.record()
    assert (record["status"], record["interrupts"]) == ("idle", {})


# ---- execution


async def test_two_agents_run_at_the_same_time(thread, pair, gates):
    first, second = start(thread, gates[0], pair.a), start(thread, gates[1], pair.b)
    await arrived(*gates)
    assert (status(thread, first), status(thread, second)) == ("running", "running")
    gates[1].open()
    await ended(thread, second)
    assert status(thread, first) == "running" and thread.record()["status"] == "busy"
    gates[0].open()
    await ended(thread, first)
    assert (await settled(thread))["status"] == "idle"
    assert log(thread, pair.a) == log(thread, pair.b) == ["before", "through", "after"]
    assert thread.state()["checkpoint"]["checkpoint_ns"] == f"assistant:{pair.a}"


async def test_a_join_after_the_end_returns_the_values_of_its_agent(thread, pair):
    agents = [pair.agent("echo") for _ in range(2)]
    for agent in agents:
        thread.say(agent, f"to {agent}")
    for run in thread.ask("GET", thread.path("/runs")):
        values = thread.ask("GET", thread.path(f"/runs/{run['run_id']}/join"))
        assert texts(values)[0] == f"to {run['assistant_id']}"


async def test_runs_of_one_agent_still_wait_for_each_other(thread, pair, gates):
    first, second = start(thread, gates[0], pair.a), start(thread, gates[1], pair.a)
    other = pair.agent("echo")
    thread.say(other, "hi")
    await arrived(gates[0])
    assert (status(thread, first), status(thread, second), gates[1].arrived) == ("running", "pending", 0)
    gates[0].open()
    await arrived(gates[1])
    gates[1].open()
    await ended(thread, second)
    assert len(log(thread, pair.a)) == 6


@pytest.mark.parametrize("strategy", ["reject", "interrupt", "rollback", "enqueue"])
async def test_a_multitask_strategy_leaves_other_agents_alone(thread, pair, gates, strategy):
    first = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    second = start(thread, gates[1], pair.b, multitask_strategy=strategy)
    await arrived(gates[1])
    assert (status(thread, first), status(thread, second)) == ("running", "running")
    if strategy == "reject":
        start(thread, gates[1], pair.b, 409, multitask_strategy=strategy)
        start(thread, gates[0], pair.a, 409, multitask_strategy=strategy)
    else:
        third = start(thread, gates[1], pair.b, multitask_strategy=strategy)
        assert status(thread, first) == "running"
        if strategy == "enqueue":
            assert status(thread, third) == "pending"
        else:
            await arrived(gates[1], count=2)
    gates[1].open()
    if strategy != "reject" and strategy != "enqueue":
        await ended(thread, third)
    if strategy == "interrupt":
        assert status(thread, second) == "interrupted"
    elif strategy == "rollback":
        thread.ask("GET", thread.path(f"/runs/{second['run_id']}"), 404)
        assert log(thread, pair.b) == ["before", "through", "after"]
    else:
        await ended(thread, second)
    assert status(thread, first) == "running"
    gates[0].open()
    await ended(thread, first)
    assert log(thread, pair.a) == ["before", "through", "after"]
    assert (await settled(thread))["status"] == "idle"


async def test_a_state_update_is_refused_only_on_a_busy_line(thread, pair, gates):
    run = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    thread.ask("POST", thread.path("/state"), 409, json={"assistant_id": pair.a, "values": {"log": ["no"]}})
    thread.ask("POST", thread.path("/state"), json={"assistant_id": pair.b, "values": {"log": ["yes"]}})
    assert log(thread, pair.b) == ["yes"] and thread.record()["status"] == "busy"
    gates[0].open()
    await ended(thread, run)
    assert log(thread, pair.a) == ["before", "through", "after"]
    assert log(thread, pair.b) == ["yes"]


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_a_cancel_leaves_the_other_agent_running(thread, pair, gates, action):
    first, second = start(thread, gates[0], pair.a), start(thread, gates[1], pair.b)
    await arrived(*gates)
    path = thread.path(f"/runs/{first['run_id']}/cancel")
    assert thread.http.post(path, params={"wait": True, "action": action}).is_success
    if action == "rollback":
        thread.ask("GET", thread.path(f"/runs/{first['run_id']}"), 404)
        assert log(thread, pair.a) == []
    else:
        assert status(thread, first) == "interrupted"
    assert status(thread, second) == "running" and thread.record()["status"] == "busy"
    gates[1].open()
    await ended(thread, second)
    record = await settled(thread)
    # The cancelled graph could continue, so its line waits.
    assert record["status"] == ("idle" if action == "rollback" else "interrupted")
    assert thread.state()["checkpoint"]["checkpoint_ns"] == f"assistant:{pair.b}"
    assert record["values"]["log"] == ["before", "through", "after"]


async def test_a_rolled_back_agent_leaves_the_head_to_the_other(thread, pair, gates):
    thread.say(pair.agent("echo"), "hi")
    first, second = start(thread, gates[0], pair.a), start(thread, gates[1], pair.b)
    await arrived(*gates)
    gates[0].open()
    await ended(thread, first)
    path = thread.path(f"/runs/{second['run_id']}/cancel")
    assert thread.http.post(path, params={"wait": True, "action": "rollback"}).is_success
    record = await settled(thread)
    assert record["status"] == "idle"
    assert thread.state()["checkpoint"]["checkpoint_ns"] == f"assistant:{pair.a}"
    assert record["values"]["log"] == ["before", "through", "after"]


async def test_an_error_beside_a_running_agent(thread, pair, gates):
    bad = pair.agent("failing")
    run = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    thread.run(bad, input={"log": []})
    assert thread.record()["status"] == "busy"
    gates[0].open()
    await ended(thread, run)
    record = await settled(thread)
    assert (record["status"], record["error"]) == ("idle", None)


# ---- copies, prunes, branches, deletion


async def test_a_copy_of_a_busy_thread_has_the_lines_of_both(thread, pair, gates, http):
    asker = pair.agent("approval")
    thread.say(asker, "may I?")
    runs = [start(thread, gate, agent) for gate, agent in zip(gates, (pair.a, pair.b))]
    await arrived(*gates)
    copy = Thread.__new__(Thread)
    copy.http, copy.id = http, http.post(thread.path("/copy")).json()["thread_id"]
    record = copy.record()
    assert record["status"] == "interrupted" and len(record["interrupts"]) == 1
    assert copy.run(asker, command={"resume": "yes"})["verdict"] == "yes"
    assert log(copy, pair.a) == log(copy, pair.b) == ["before"]
    assert len(thread.record()["interrupts"]) == 1
    for gate in gates:
        gate.open()
    for run in runs:
        await ended(thread, run)
    assert len((await settled(thread))["interrupts"]) == 1


async def test_a_prune_beside_a_running_agent(thread, pair, gates, http):
    echo = pair.agent("echo")
    for text in ("one", "two"):
        thread.say(echo, text)
    run = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    assert http.post("/threads/prune", json={"thread_ids": [thread.id], "strategy": "keep_latest"}).is_success
    assert len(thread.history(assistant_id=echo)) == 1
    assert texts(thread.say(echo, "three"))[::2] == ["one", "two", "three"]
    gates[0].open()
    await ended(thread, run)
    assert log(thread, pair.a) == ["before", "through", "after"]
    assert (await settled(thread))["status"] == "idle"


async def test_a_branch_is_deleted_beside_a_running_agent(thread, pair, gates):
    echo = pair.agent("echo")
    thread.say(echo, "one", "m1")
    thread.say(echo, "two", "m2")
    fork = thread.before("m2", assistant_id=echo)
    thread.say(echo, "other", "m3", checkpoint_id=fork)
    run = start(thread, gates[0], pair.a)
    await arrived(gates[0])
    tree = thread.ask("GET", thread.path("/branches"), params={"assistant_id": echo})
    [branch] = [each for each in tree["branches"] if each["leaf"] and not each["current"]]
    path = thread.path(f"/branches/{branch['branch_id']}")
    thread.ask("DELETE", path, 204, params={"assistant_id": echo})
    tree = thread.ask("GET", thread.path("/branches"), params={"assistant_id": echo})
    assert branch["branch_id"] not in [each["branch_id"] for each in tree["branches"]]
    own = thread.ask("GET", thread.path("/branches"), params={"assistant_id": pair.a})["branches"][0]
    thread.ask("DELETE", thread.path(f"/branches/{own['branch_id']}"), 409, params={"assistant_id": pair.a})
    assert thread.record()["status"] == "busy"
    gates[0].open()
    await ended(thread, run)
    assert (await settled(thread))["values"]["log"] == ["before", "through", "after"]


async def test_a_thread_is_deleted_while_two_agents_run(thread, pair, gates, http):
    for gate, agent in zip(gates, (pair.a, pair.b)):
        start(thread, gate, agent)
    await arrived(*gates)
    start(thread, gates[0], pair.a)
    thread.ask("DELETE", thread.path(""), 204)
    thread.ask("GET", thread.path(""), 404)
    again = Thread(http, thread_id=thread.id)
    record = again.record()
    assert (record["status"], record["interrupts"]) == ("idle", {})
    assert again.state(assistant_id=pair.a)["values"] == {}


# ---- restart


async def test_both_agents_continue_after_a_crash(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http, Gate() as first, Gate() as second:
        thread, pair = Thread(http), Pair(http)
        asker = pair.agent("approval")
        thread.say(asker, "may I?")
        runs = [start(thread, first, pair.a), start(thread, second, pair.b)]
        queued = start(thread, first, pair.a)
        await arrived(first, second)
        own_server.kill()
        own_server.restart()
        await arrived(first, second, count=2)
        assert [status(thread, run) for run in (*runs, queued)] == ["running", "running", "pending"]
        record = thread.record()
        assert record["status"] == "busy" and len(record["interrupts"]) == 1
        second.open()
        await ended(thread, runs[1])
        first.open()
        for run in (runs[0], queued):
            await ended(thread, run)
        assert log(thread, pair.b) == ["before", "through", "after"]
        assert log(thread, pair.a) == 2 * ["before", "through", "after"]
        assert (await settled(thread))["status"] == "interrupted"
        assert thread.run(asker, command={"resume": "yes"})["verdict"] == "yes"
        assert thread.record()["status"] == "idle"


async def test_answers_survive_a_crash_beside_another_question(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http, Gate() as gate:
        thread, pair = Thread(http), Pair(http)
        first, second = pair.agent("approval"), pair.agent("approval")
        thread.say(first, "one")
        thread.say(second, "two")
        run = start(thread, gate, pair.a)
        await arrived(gate)
        own_server.kill()
        own_server.restart()
        await arrived(gate, count=2)
        assert thread.run(second, command={"resume": "b"})["verdict"] == "b"
        gate.open()
        await ended(thread, run)
        assert thread.run(first, command={"resume": "a"})["verdict"] == "a"
        assert (await settled(thread))["status"] == "idle"


# ---- one queue per thread


@pytest.fixture(scope="module", params=STORES.values(), ids=STORES)
def serial(request):
    store = request.param and f"{request.param}_serial"
    with Server(store=store) as running:
        running.stop()
        (running.folder / "config.json").write_text('{"namespaces": {"parallel": false}}')
        running.options = ["--config", str(running.folder / "config.json")]
        running.start()
        yield running


async def test_without_parallel_lines_a_thread_has_one_queue(serial, gates):
    with httpx.Client(base_url=serial.url, timeout=60) as http:
        thread, pair = Thread(http), Pair(http)
        first, second = start(thread, gates[0], pair.a), start(thread, gates[1], pair.b)
        await arrived(gates[0])
        start(thread, gates[1], pair.b, 409, multitask_strategy="reject")
        thread.ask("POST", thread.path("/state"), 409, json={"assistant_id": pair.b, "values": {"log": ["no"]}})
        assert (status(thread, second), gates[1].arrived) == ("pending", 0)
        gates[0].open()
        await ended(thread, first)
        await arrived(gates[1])
        third = start(thread, gates[0], pair.a, multitask_strategy="interrupt")
        await ended(thread, second, "interrupted")
        await ended(thread, third)


# ---- load


async def test_many_agents_at_once(thread, pair):
    """Runs of eight agents end at the same time: each commit changes the same thread."""
    agents = [pair.agent("echo") for _ in range(8)]
    failed = []

    def speak(agent):
        try:
            with httpx.Client(base_url=thread.http.base_url, timeout=60) as http:
                mine = Thread.__new__(Thread)
                mine.http, mine.id = http, thread.id
                for number in range(4):
                    said = texts(mine.say(agent, f"{number}"))
                assert said[::2] == ["0", "1", "2", "3"], said
        except BaseException as problem:  # noqa: BLE001
            failed.append(problem)

    workers = [threading.Thread(target=speak, args=(agent,)) for agent in agents]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed, failed
    assert (await settled(thread))["status"] == "idle"
    for agent in agents:
        assert len(thread.history(assistant_id=agent)) == 12
