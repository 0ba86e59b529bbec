"""Servers that are killed, paused, stopped or cut off: their runs continue elsewhere, once."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from counting import lost_results, receipts, repeated_steps, script
from load import eventually
from plain import human
from readers import Journal, Reader, agree
from talk import Talk

SECONDS = 20  # "within seconds", on a busy machine: lease, a poll, and the run itself


def begin(servers, through, gate, **more) -> tuple[Talk, str]:
    """A run of the server that waits at the gate, with its checkpoint stored."""
    talk = Talk(servers, through)
    body = {"input": {"messages": []}, "config": gate.config, "durability": "sync", **more}
    before = gate.arrived
    run = talk.start(through, "gated", **body)
    eventually(lambda: gate.arrived > before)
    eventually(lambda: talk.state(through)["next"] == ["gate"])
    assert talk.holder() == through
    return talk, run


def attempts(talk, through, run) -> list[int]:
    return replay(talk, through, run).attempts()


def replay(talk, through, run) -> Journal:
    return Reader(through.url, talk.path(f"/runs/{run}/stream"), headers={"Last-Event-ID": "-1"}).join()


def ends_well(talk, through, run) -> None:
    assert talk.join(through, run)["log"] == ["before", "through", "after"]
    assert talk.run(through, run)["status"] == "success"
    talk.is_free()


def test_the_runs_of_a_killed_server_continue_elsewhere_within_seconds(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    begun = [begin(servers, a, gate) for _ in range(12)]  # 1 in 2,048: all are in one share
    arrived = gate.arrived
    a.kill()
    died = time.monotonic()
    eventually(lambda: gate.arrived == arrived + len(begun), SECONDS)
    print(f"twelve runs were taken over in {time.monotonic() - died:.1f} s")
    assert {talk.holder() for talk, _ in begun} == {b, c}, "both take some"
    gate.open()
    for talk, run in begun:
        ends_well(talk, b, run)
        assert attempts(talk, c, run) == [1, 2]
    assert gate.arrived == arrived + len(begun)


def test_a_reader_keeps_its_place_when_the_server_of_its_run_is_killed(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    talk, run = begin(servers, a, gate, stream_mode=["values", "messages-tuple"])
    path = talk.path(f"/runs/{run}/stream")
    reader = Reader(b.url, path, headers={"Last-Event-ID": "-1"})
    eventually(lambda: len(reader.journal.frames) >= 2)
    a.kill()
    journal = reader.journal
    reader.thread.join(60)  # ends with its holder, or follows the run
    eventually(lambda: gate.arrived == 2)
    gate.open()
    while not journal.has_ended():
        again = Reader(c.url, path, headers={"Last-Event-ID": journal.last})
        for frame in again.join().frames:
            assert frame[2] > journal.frames[-1][2]
            journal.frames.append(frame)
    agree(journal, replay(talk, b, run))


def test_queued_runs_of_a_killed_server_keep_their_order(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    talk, first = begin(servers, a, gate)
    runs = [talk.start(each, "gated", input={}, config=gate.config) for each in (a, b, c, a)]
    a.kill()
    eventually(lambda: gate.arrived == 2, SECONDS)
    gate.open()
    for number, run in enumerate([first, *runs]):
        assert talk.join(c, run)["log"] == ["before", "through", "after"] * (number + 1)


def test_a_paused_server_writes_nothing_when_it_returns(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    talk, run = begin(servers, a, gate)
    a.may_end = True
    a.pause()
    eventually(lambda: gate.arrived == 2, SECONDS)
    gate.open()  # also for the request of the paused server
    ends_well(talk, b, run)
    tables = ("checkpoints", "writes", "runs", "thread_info", "event_pages", "holds", "lines", "servers")
    count = "; ".join(f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t" for table in tables[:-1])
    before = servers.sql(count)
    a.go_on()
    eventually(a.has_ended)
    assert servers.sql(count) == before
    assert gate.arrived == 2
    assert attempts(talk, c, run) == [1, 2]


def test_a_short_pause_changes_nothing(cluster, gate):
    servers = cluster(lease=30)
    a, b, c = servers.members
    talk, run = begin(servers, a, gate)
    a.pause()
    gate.open()
    assert talk.run(b, run)["status"] == "running"
    a.go_on()
    ends_well(talk, c, run)
    assert attempts(talk, b, run) == [1] and gate.arrived == 1


def test_a_server_without_its_database_loses_its_runs_to_others(cluster, gate):
    servers = cluster()
    a, b, c = servers.members
    talk, run = begin(servers, a, gate)
    a.may_end = True
    servers.cut_store(a)
    eventually(lambda: gate.arrived == 2, SECONDS)
    gate.open()
    ends_well(talk, b, run)
    servers.mend(a)
    eventually(a.has_ended)
    assert attempts(talk, c, run) == [1, 2] and gate.arrived == 2
    a.revive()
    servers.size_becomes(3)


def test_an_outage_of_the_database_moves_no_runs(cluster, gate):
    servers = cluster()
    begun = [begin(servers, each, gate) for each in servers.members]
    rows = servers.rows()
    servers.stop_database()
    try:
        time.sleep(servers.lease * 2.5)  # what must not happen takes as long as this
        gate.open()
    finally:
        servers.start_database()
    for talk, run in begun:
        ends_well(talk, servers.members[0], run)
        assert attempts(talk, servers.members[1], run) == [1]
    assert gate.arrived == 3
    assert servers.rows().keys() == rows.keys()


def test_sigterm_hands_over_at_once_and_counts_no_attempt(cluster, gate):
    """The lease is long: no server has waited for it. Four stops in the same step would be too many if
    they counted."""
    servers = cluster(lease=60)
    talk, run = begin(servers, servers.members[0], gate)
    for _ in range(4):
        holder = talk.is_held()
        arrived = gate.arrived
        holder.stop()
        eventually(lambda: gate.arrived > arrived, SECONDS)
        assert talk.is_held() != holder
        holder.revive()
        assert talk.run(holder, run)["status"] == "running"
    gate.open()
    ends_well(talk, servers.members[1], run)


def test_a_server_that_stops_takes_no_threads_over_and_leads_no_others(cluster, gate):
    """It still has an open stream when the leader is killed."""
    servers = cluster(options=["--drain", "60"])
    a, b, c = servers.members
    begun = [begin(servers, a, gate) for _ in range(8)]
    talk, run = begin(servers, b, gate)
    reader = Reader(b.url, talk.path(f"/runs/{run}/stream"), headers={"Last-Event-ID": "-1"})
    b.process.terminate()
    eventually(lambda: b.logged("stopping;"))
    assert servers.leader() == a
    arrived = gate.arrived
    a.kill()
    eventually(lambda: gate.arrived == arrived + len(begun), SECONDS)
    assert b.is_up() and {talk.holder() for talk, _ in begun} == {c}
    assert eventually(servers.leader) == c
    gate.open()
    assert reader.join().has_ended()
    assert b.process.wait(SECONDS) == 0
    b.revive()
    for each, its in begun:
        ends_well(each, c, its)
    ends_well(talk, b, run)


def test_sigterm_lets_a_step_end(cluster):
    servers = cluster(lease=60)
    a, b, c = servers.members
    talk = Talk(servers, a)
    run = talk.start(a, "staged", input={"log": []}, stream_mode="updates")
    for server in (a, b, c):
        seen = len((talk.state(server)["values"] or {}).get("log", []))
        eventually(lambda: len((talk.state(server)["values"] or {}).get("log", [])) > seen)
        holder = talk.is_held()
        holder.stop()
        holder.revive()
    assert talk.join(b, run)["log"] == [f"stage{number}" for number in range(12)]
    updates = [list(data)[0] for name, data, _ in replay(talk, c, run).frames if name == "updates"]
    assert updates == [f"stage{number}" for number in range(12)], "no step was repeated"


@pytest.mark.parametrize("breaks", [False, True], ids=["silent", "refused"])
def test_a_holder_that_cannot_be_reached_gives_503(cluster, gate, breaks):
    servers = cluster()
    a, b, c = servers.members
    talk, run = begin(servers, a, gate)
    servers.cut_peers(a, b, breaks)
    with b.client() as http:
        answer = http.post(talk.path(f"/runs/{run}/cancel"), params={"wait": "1"})
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0, answer.text
        assert http.get(talk.path()).json()["status"] == "busy"
    assert talk.run(b, run)["status"] == "running"
    assert talk.ask(c, "POST", f"/runs/{run}/cancel", params={"wait": "1"})["status"] == "interrupted"
    servers.mend(a, b)
    talk, run = begin(servers, a, gate)
    gate.open()
    ends_well(talk, b, run)


def test_a_request_that_waits_for_a_paused_holder_is_answered(cluster, gate):
    """By the server that has taken over, or with the advice to come back."""
    servers = cluster()
    a, b, _ = servers.members
    talk, run = begin(servers, a, gate)
    a.may_end = True
    a.pause()
    asked = {
        "cancel": ("POST", f"/runs/{run}/cancel?wait=1"),
        "join": ("GET", f"/runs/{run}/join"),
        "stream": ("GET", f"/runs/{run}/stream"),
        "create": ("POST", "/runs"),
    }

    def ask(method: str, rest: str) -> int:
        body = gate.body() if rest == "/runs" else None
        return httpx.request(method, b.url + talk.path(rest), json=body, timeout=SECONDS).status_code

    with ThreadPoolExecutor() as pool:
        answers = {name: pool.submit(ask, *what) for name, what in asked.items()}
        eventually(lambda: gate.arrived == 2 or talk.run(b, run)["status"] == "interrupted", SECONDS)
        gate.open()
        found = {name: answer.result() for name, answer in answers.items()}
    assert set(found.values()) <= {200, 503}, found
    a.go_on()
    eventually(a.has_ended)


def test_clocks_that_differ_change_no_order(cluster, gate):
    servers = cluster(clocks=(-30, 0, 30))
    a, b, c = servers.members
    talk = Talk(servers, a)
    said = []
    for number, each in enumerate((a, c, b, c, a, b, a, c)):
        text = f"{number} through {each.name}"
        talk.wait(each, "echo", input=human(text))
        said += [text, f"You said: {text}"]
        assert [talk.said(other) for other in (a, b, c)] == [said] * 3
    texts = [run["kwargs"]["input"]["messages"][0]["content"] for run in talk.runs(b)]
    assert texts == said[::2]
    history = talk.ask(b, "POST", "/history", json={"limit": 1000})
    ids = [state["checkpoint"]["checkpoint_id"] for state in history]
    assert [state["parent_checkpoint"]["checkpoint_id"] for state in history[:-1]] == ids[1:]
    assert len(talk.ask(c, "GET", "/branches")["branches"]) == 1
    # A take-over by a server whose clock is behind.
    talk, run = begin(servers, c, gate)
    c.kill()
    eventually(lambda: gate.arrived == 2, SECONDS)
    gate.open()
    ends_well(talk, a, run)
    assert talk.wait(b, "gated", input={}, config=gate.config)["log"] == ["before", "through", "after"] * 2


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_new_run_waits_for_those_of_a_server_that_has_ended(cluster, gate, end):
    """It is created while no server executes the runs of the thread."""
    servers = cluster()
    a, b, c = servers.members
    talks = [Talk(servers, a) for _ in range(20)]
    body = {"input": {}, "config": gate.config, "durability": "sync"}
    firsts = [talk.start(a, "gated", **body) for talk in talks]
    eventually(lambda: gate.arrived == len(talks))
    getattr(a, end)()
    gate.open()

    def start(talk: Talk, through) -> str | None:
        """Comes back while the holder cannot be reached."""
        with through.client() as http:
            while True:
                answer = http.post(talk.path("/runs"), json=gate.body())
                if answer.status_code == 200:
                    return answer.json()["run_id"]
                assert answer.status_code == 503, answer.text

    with ThreadPoolExecutor(len(talks)) as pool:
        seconds = list(pool.map(start, talks, [b, c] * (len(talks) // 2)))
    for talk, first, second in zip(talks, firsts, seconds):
        logs = [talk.join(b, run)["log"] for run in (first, second)]
        assert logs[1] == ["before", "through", "after"] * 2, (talk.id, logs)
        assert logs[0] in (logs[1][:3], logs[1]), (talk.id, logs)  # the first may be read after the second


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_runs_keep_their_order_from_clock_to_clock(cluster, gate, end):
    """Each server that executes the first run has another time; later runs are created meanwhile."""
    servers = cluster(clocks=(-30, 0, 30))
    talk, first = begin(servers, servers.members[2], gate)
    runs, last = [first], servers.members[2]
    for _ in range(4):
        arrived = gate.arrived
        getattr(last, end)()
        eventually(lambda: gate.arrived > arrived or talk.runs(servers.up()[0])[0]["status"] == "error", SECONDS)
        holder = talk.is_held()
        assert gate.arrived == arrived + 1
        runs.append(talk.start(holder, "gated", input={}, config=gate.config))
        last.revive()
        last = holder
        if end == "kill" and len(runs) == 3:
            break  # a run that is killed three times in a step is given up
    gate.open()
    for number, run in enumerate(runs):
        assert talk.join(servers.members[1], run)["log"] == ["before", "through", "after"] * (number + 1)


def test_a_tool_call_whose_result_was_stored_is_not_made_again(cluster, counter, mock):
    """Kills the holder after each step of an agent that pays."""
    model = mock(script(latency_ms=700))
    env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-of-the-environment"}
    servers = cluster({"payer": counter.agent()}, env=env)
    a, b, c = servers.members
    talk = Talk(servers, b)
    run = talk.start(b, "payer", input=human("job"), durability="sync", on_disconnect="continue")
    for step in ("1", "2b"):
        eventually(lambda: step in [each.step for each in counter.of("job")])
        dead = talk.is_held()
        dead.kill()
        eventually(lambda: talk.holder() not in (None, dead) or dead is None, SECONDS)
        dead.revive()
    messages = talk.join(c, run)["messages"]
    assert [step for _, _, step in receipts(messages)] == ["1", "2a", "2b", "3"], messages
    payments = counter.of("job")
    assert not repeated_steps(payments) and not lost_results(payments, messages)
    assert len({each.key for each in payments}) == 4, "a repeated call has the key of the first one"
