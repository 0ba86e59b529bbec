"""The rules of lines at their edges: chosen heads, rollbacks, removals, and what the database keeps."""

import sqlite3

import httpx
import pytest
from gate import Gate
from plain import Thread, events, human, identity, until

pytestmark = pytest.mark.beyond_peer("has one line for all agents")


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def agents(http):
    made = []

    def make(graph):
        made.append(http.post("/assistants", json={"graph_id": graph}).json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


def listed(thread) -> dict[str, dict]:
    return {each["assistant_id"]: each for each in thread.ask("GET", thread.path("/agents"))}


def choose(thread, agent, checkpoint) -> None:
    thread.ask("PATCH", thread.path("/branches"), json={"assistant_id": agent, "checkpoint_id": checkpoint})


def found(http, thread, status) -> bool:
    hits = http.post("/threads/search", json={"status": status, "ids": [thread.id]}).json()
    mark = {"status": status, "metadata": {"mark": thread.id}}
    assert http.post("/threads/count", json=mark).json() == len(hits)
    return bool(hits)


# ---- status


def test_a_head_at_a_breakpoint_waits_as_its_run_did(http, thread, agents):
    nap, echo = agents("nap"), agents("echo")
    thread.ask("PATCH", thread.path(""), json={"metadata": {"mark": thread.id}})
    thread.run(nap, input={"ms": 1}, interrupt_before=["sleep"])
    stopped = thread.state(assistant_id=nap)
    assert stopped["next"] == ["sleep"] and thread.record()["status"] == "interrupted"
    thread.run(nap)
    ended = identity(thread.state(assistant_id=nap))
    thread.say(echo, "hi")
    assert thread.record()["status"] == "idle"
    choose(thread, nap, identity(stopped))
    assert thread.record()["status"] == "interrupted" and found(http, thread, "interrupted")
    agent = listed(thread)[nap]
    assert (agent["status"], agent["next"], agent["interrupts"]) == ("interrupted", ["sleep"], {})
    assert agent["head_checkpoint_id"] == identity(stopped)
    choose(thread, nap, ended)
    assert thread.record()["status"] == "idle" and found(http, thread, "idle")
    assert (listed(thread)[nap]["status"], listed(thread)[nap]["next"]) == ("idle", [])


def test_a_head_at_a_question_asks_it_again(thread, agents):
    asker, echo = agents("approval"), agents("echo")
    thread.say(asker, "may I?")
    asked = thread.state(assistant_id=asker)
    question = thread.record()["interrupts"]
    thread.run(asker, command={"resume": "yes"})
    thread.say(echo, "hi")
    assert (thread.record()["status"], thread.record()["interrupts"]) == ("idle", {})
    choose(thread, asker, identity(asked))
    assert (thread.record()["status"], thread.record()["interrupts"]) == ("interrupted", question)
    assert listed(thread)[asker]["interrupts"] == question
    assert "__interrupt__" in thread.run(asker)
    assert thread.run(asker, command={"resume": "no"})["verdict"] == "no"
    assert (thread.record()["status"], thread.record()["interrupts"]) == ("idle", {})


def test_a_rolled_back_answer_leaves_the_question_open(thread, agents):
    asker, echo = agents("approval"), agents("echo")
    thread.say(asker, "may I?")
    thread.say(echo, "hi")
    question = thread.record()["interrupts"]
    with Gate() as gate:
        other = agents("gated")
        run = thread.ask("POST", thread.path("/runs"), json=gate.body(assistant_id=other))["run_id"]
        until(lambda: gate.arrived)
        waiting = thread.ask(
            "POST", thread.path("/runs"),
            json={"assistant_id": asker, "command": {"resume": "yes"}, "after_seconds": 3600},
        )["run_id"]  # fmt: skip
        path = thread.path(f"/runs/{waiting}/cancel")
        assert thread.http.post(path, params={"wait": True, "action": "rollback"}).is_success
        assert thread.record()["status"] == "busy" and thread.record()["interrupts"] == question
        gate.open()
        thread.ask("GET", thread.path(f"/runs/{run}/join"))
    record = until(lambda: (found := thread.record())["status"] != "busy" and found)
    assert (record["status"], record["interrupts"]) == ("interrupted", question)
    assert thread.run(asker, command={"resume": "yes"})["verdict"] == "yes"


def test_an_ended_run_has_its_checkpoint(thread, agents):
    first, second = agents("echo"), agents("approval")
    thread.say(first, "one")
    thread.say(second, "two")
    runs = {run["assistant_id"]: run for run in thread.ask("GET", thread.path("/runs"))}
    for agent in (first, second):
        run = thread.ask("GET", thread.path(f"/runs/{runs[agent]['run_id']}"))
        assert run["checkpoint_id"] == identity(thread.state(assistant_id=agent))


def test_the_timeline_of_one_agent(thread, agents):
    first, second = agents("echo"), agents("echo")
    thread.say(first, "one")
    thread.say(second, "two")
    said = [entry["message"]["content"] for entry in thread.timeline(assistant_id=second)]
    assert said == ["two", "You said: two"] and len(thread.timeline()) == 4


# ---- the official client


async def test_status_and_interrupts_by_the_official_client(client, agents):
    asker, echo = agents("approval"), agents("echo")
    made = await client.threads.create(metadata={"kind": "mixed"})
    thread = made["thread_id"]
    await client.runs.wait(thread, asker, input=human("may I?"))
    await client.runs.wait(thread, echo, input=human("hi"))
    record = await client.threads.get(thread)
    assert record["status"] == "interrupted"
    [[question]] = record["interrupts"].values()
    state = await client.threads.get_state(thread, checkpoint={"checkpoint_ns": f"assistant:{asker}"})
    assert [task["id"] for task in state["tasks"]] == list(record["interrupts"])
    assert [each["id"] for task in state["tasks"] for each in task["interrupts"]] == [question["id"]]
    hits = await client.threads.search(status="interrupted", ids=[thread])
    assert [hit["thread_id"] for hit in hits] == [thread] and hits[0]["interrupts"] == record["interrupts"]
    assert await client.threads.count(status="interrupted", metadata={"kind": "mixed"}) >= 1
    await client.runs.wait(thread, asker, command={"resume": "yes"})
    assert (await client.threads.get(thread))["status"] == "idle"
    assert await client.threads.search(status="interrupted", ids=[thread]) == []
    await client.threads.delete(thread)


# ---- removal


def remove(thread, agent, status=204):
    return thread.ask("DELETE", thread.path(f"/agents/{agent}"), status)


def log_of(url: str, thread: str) -> list:
    """All events of the thread that can still be read, up to the first silence."""
    text = ""
    headers = {"Last-Event-ID": "-"}
    with httpx.stream("GET", f"{url}/threads/{thread}/stream", headers=headers, timeout=60) as answer:
        for piece in answer.iter_text():
            text += piece
            if ": heartbeat" in text:
                break
    return events(text.partition(": heartbeat")[0])


def runs_of(log) -> set[str]:
    """The runs that have a metadata event."""
    return {data["run_id"] for name, data, _ in log if name == "metadata"}


def test_the_words_of_a_removed_agent_are_not_found(http, thread, agents):
    gone, stays = agents("echo"), agents("echo")
    thread.say(stays, "walrus here")
    thread.say(gone, "zebra there")

    def hits(word):
        body = {"text": word, "ids": [thread.id]}
        return [each["thread_id"] for each in http.post("/threads/search", json=body).json()]

    assert hits("zebra") == [thread.id]
    remove(thread, gone)
    assert hits("zebra") == [] and hits("walrus") == [thread.id]


def test_the_database_keeps_nothing_of_a_removed_agent(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        gone, stays = (http.post("/assistants", json={"graph_id": "approval"}).json()["assistant_id"] for _ in range(2))
        for agent in (gone, stays):
            thread.say(agent, f"to {agent}", stream_resumable=True, webhook="http://127.0.0.1:9/none")
        runs = {run["assistant_id"]: run["run_id"] for run in thread.ask("GET", thread.path("/runs"))}
        assert set(mentions(own_server, runs[gone])) >= {"runs", "checkpoints"}
        remove(thread, gone)
        assert mentions(own_server, runs[gone]) == []
        assert mentions(own_server, f"assistant:{gone}") == []
        assert "runs" in mentions(own_server, runs[stays])
        http.delete(f"/assistants/{gone}")
        until(lambda: mentions(own_server, gone) == [])  # the search index follows


def test_the_events_of_a_removed_agent_are_gone(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http, Gate() as first, Gate() as second:
        thread = Thread(http)
        gone, stays = (http.post("/assistants", json={"graph_id": "gated"}).json()["assistant_id"] for _ in range(2))
        more = {"stream_resumable": True, "stream_mode": ["updates", "values"]}
        runs = [
            thread.ask("POST", thread.path("/runs"), json=gate.body(assistant_id=agent, **more))["run_id"]
            for agent, gate in ((gone, first), (stays, second))
        ]
        until(lambda: first.arrived and second.arrived)
        first.open()
        second.open()
        for run in runs:
            thread.ask("GET", thread.path(f"/runs/{run}/join"))
        before = log_of(own_server.url, thread.id)
        assert runs_of(before) == set(runs)
        remove(thread, gone)
        after = log_of(own_server.url, thread.id)
        assert runs_of(after) == {runs[1]}
        kept = [each for each in before if each in after]
        assert kept == after and len(after) == len(before) // 2
        own_server.stop()
        own_server.restart()
        assert log_of(own_server.url, thread.id) == after


def mentions(server, text: str) -> list[str]:
    """The tables with a row that has the text."""
    found = []
    with sqlite3.connect(server.store.removeprefix("sqlite:").partition("?")[0]) as database:
        database.text_factory = bytes
        tables = [name.decode() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                if any(isinstance(cell, bytes) and text.encode() in cell for cell in row):
                    found.append(table)
                    break
    return found
