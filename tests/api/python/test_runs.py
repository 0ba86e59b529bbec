"""runs.*: create, wait, list, cancel, delete; streams are in test_streams.py."""

import asyncio
import datetime
import uuid

import pytest
from clients import collect, human, refused, texts, until
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from listener import Listener

LONG = {"ms": 600_000}  # no test waits for its end


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


async def is_running(client, thread, run):
    async def running():
        return (await client.runs.get(thread, run["run_id"]))["status"] == "running"

    async def slept_on():
        return (await client.threads.get_state(thread))["next"] == ["sleep"]

    await until(running)
    await until(slept_on)


async def test_wait_gives_the_values(client, thread):
    assert texts(await client.runs.wait(thread, "echo", input=human("hi"))) == ["hi", "You said: hi"]
    assert texts(await client.runs.wait(thread, "echo", input=human("more"))) == [
        "hi", "You said: hi", "more", "You said: more",
    ]  # fmt: skip


async def test_create_then_join(client, thread):
    assistant = await client.assistants.get("echo")
    made = []
    run = await client.runs.create(
        thread, "echo", input=human("hi"), metadata={"purpose": "test"}, on_run_created=made.append
    )
    uuid.UUID(run["run_id"])
    assert run["thread_id"] == thread and run["status"] in ("pending", "running")
    assert run["assistant_id"] == assistant["assistant_id"] and run["metadata"]["purpose"] == "test"
    assert run["kwargs"]["input"] == human("hi") and run["created_at"] and run["updated_at"]
    assert made == [{"run_id": run["run_id"], "thread_id": thread}]
    assert texts(await client.runs.join(thread, run["run_id"])) == ["hi", "You said: hi"]
    done = await client.runs.get(thread, run["run_id"])
    assert done["status"] == "success"
    assert texts(await client.runs.join(thread, run["run_id"])) == ["hi", "You said: hi"]  # once more


@pytest.mark.beyond_peer("lists the oldest first")
async def test_list(client, thread):
    runs = []
    for text in ("one", "two", "three"):
        runs.append(await client.runs.create(thread, "echo", input=human(text)))
        await client.runs.join(thread, runs[-1]["run_id"])
    newest_first = [run["run_id"] for run in reversed(runs)]
    assert [run["run_id"] for run in await client.runs.list(thread)] == newest_first
    assert [run["run_id"] for run in await client.runs.list(thread, limit=1, offset=1)] == newest_first[1:2]
    assert len(await client.runs.list(thread, status="success")) == 3
    assert await client.runs.list(thread, status="error") == []


@pytest.mark.beyond_peer("always lists whole runs")
async def test_list_selects(client, thread):
    await client.runs.wait(thread, "echo", input=human("hi"))
    [run] = await client.runs.list(thread, select=["run_id", "status"])
    assert set(run) == {"run_id", "status"} and run["status"] == "success"


async def test_unknown_runs(client, thread, unknown):
    for call in (client.runs.get, client.runs.delete, client.runs.cancel):
        with pytest.raises(NotFoundError):
            await call(thread, unknown)


@pytest.mark.beyond_peer("answers 200 with an error inside, and 422 for threads")
async def test_unknown_threads_and_runs_to_join(client, thread, unknown):
    with refused(404, "Run not found"):
        await client.runs.join(thread, unknown)
    with refused(404, "Run not found"):
        await collect(client.runs.join_stream(thread, unknown))
    for call in (client.runs.create, client.runs.wait):
        with refused(404, f"Thread with ID {unknown} not found"):
            await call(unknown, "echo", input=human("hi"))
    with pytest.raises(NotFoundError):
        await client.runs.list(unknown)


async def test_unknown_assistants(client, thread):
    for call in (client.runs.create, client.runs.wait):
        with refused(404):
            await call(thread, "no-such-graph", input=human("hi"))
    with refused(404):
        await collect(client.runs.stream(thread, "no-such-graph", input=human("hi")))


@pytest.mark.beyond_peer("answers 400")
async def test_wrong_values(client, thread):
    for wrong in (
        {"stream_mode": "colours"},
        {"multitask_strategy": "shout"},
        {"durability": "perhaps"},
        {"if_not_exists": "perhaps"},
        {"interrupt_before": 3},
        {"after_seconds": "soon"},
    ):
        with pytest.raises(UnprocessableEntityError):
            await client.runs.create(thread, "echo", input=human("hi"), **wrong)
    assert await client.runs.list(thread) == []
    assert (await client.threads.get(thread))["status"] == "idle"


async def test_if_not_exists_creates_the_thread(client, unknown):
    values = await client.runs.wait(unknown, "echo", input=human("hi"), if_not_exists="create")
    assert texts(values) == ["hi", "You said: hi"]
    assert (await client.threads.get(unknown))["status"] == "idle"


async def test_wait_raises_the_error_of_the_graph(client, thread):
    with pytest.raises(Exception, match="boom"):
        await client.runs.wait(thread, "failing", input={"log": []})
    values = await client.runs.wait(thread, "failing", input={"log": []}, raise_error=False)
    assert "boom" in values["__error__"]["message"]
    assert [run["status"] for run in await client.runs.list(thread)] == ["error", "error"]


@pytest.mark.beyond_peer("has its own error around the graph's")
async def test_wait_names_the_error(client, thread):
    values = await client.runs.wait(thread, "failing", input={"log": []}, raise_error=False)
    assert values == {"__error__": {"error": "ValueError", "message": "boom"}}


@pytest.mark.beyond_peer("has its own error around the graph's")
async def test_a_join_reports_the_error_of_its_run(client, thread):
    await client.runs.wait(thread, "failing", input={"log": []}, raise_error=False)
    await client.runs.wait(thread, "echo", input=None, raise_error=False)  # another error
    await client.runs.wait(thread, "echo", input=human("hi"))
    first = (await client.runs.list(thread))[-1]
    assert await client.runs.join(thread, first["run_id"]) == {"__error__": {"error": "ValueError", "message": "boom"}}


async def test_no_input_on_an_empty_thread_fails(client, thread):
    with pytest.raises(Exception, match="input"):
        await client.runs.wait(thread, "echo", input=None)
    assert (await client.threads.get(thread))["status"] == "error"


async def test_resume(client, thread):
    await client.runs.wait(thread, "approval", input=human("hi"))
    values = await client.runs.wait(thread, "approval", command={"resume": "yes"})
    assert values["verdict"] == "yes" and texts(values) == ["hi", "Approved: yes"]
    assert [run["status"] for run in await client.runs.list(thread)] == ["success", "success"]


async def test_two_questions_one_after_the_other(client, thread):
    first = await client.runs.wait(thread, "questions", input={"log": []})
    assert [each["value"] for each in first["__interrupt__"]] == ["name?"]
    second = await client.runs.wait(thread, "questions", command={"resume": "Ada"})
    assert [each["value"] for each in second["__interrupt__"]] == [{"age of": "Ada"}]
    assert (await client.runs.wait(thread, "questions", command={"resume": 36}))["log"] == ["Ada is 36"]


async def test_two_questions_at_once_answered_by_id(client, thread):
    await client.runs.wait(thread, "panel", input={"log": []})
    state = await client.threads.get_state(thread)
    asked = {task["name"]: task["interrupts"][0] for task in state["tasks"]}
    assert {name: each["value"] for name, each in asked.items()} == {"left": "left?", "right": "right?"}
    answers = {asked["left"]["id"]: "L", asked["right"]["id"]: "R"}
    values = await client.runs.wait(thread, "panel", command={"resume": answers})
    assert sorted(values["log"]) == ["left: L", "right: R"]


async def test_one_of_two_answered(client, thread):
    await client.runs.wait(thread, "panel", input={"log": []})
    asked = {task["name"]: task["interrupts"][0] for task in (await client.threads.get_state(thread))["tasks"]}
    await client.runs.wait(thread, "panel", command={"resume": {asked["right"]["id"]: "R"}})
    assert (await client.threads.get_state(thread))["next"] == ["left"]
    assert (await client.threads.get(thread))["status"] == "interrupted"
    values = await client.runs.wait(thread, "panel", command={"resume": {asked["left"]["id"]: "L"}})
    assert sorted(values["log"]) == ["left: L", "right: R"]


async def test_command_with_update_and_goto(client, thread):
    await client.runs.wait(thread, "approval", input=human("hi"))
    values = await client.runs.wait(thread, "approval", command={"update": {"verdict": "skipped"}, "goto": "reply"})
    assert "Approved: skipped" in texts(values)


async def test_breakpoints(client, thread):
    await client.runs.wait(thread, "nap", input={"ms": 1}, interrupt_before=["sleep"])
    state = await client.threads.get_state(thread)
    assert state["next"] == ["sleep"] and state["values"]["log"] == ["before"]
    assert (await client.threads.get(thread))["status"] == "interrupted"
    await client.runs.wait(thread, "nap", input=None, interrupt_after=["sleep"])
    assert (await client.threads.get_state(thread))["next"] == ["after"]
    assert (await client.runs.wait(thread, "nap", input=None))["log"] == ["before", "slept", "after"]
    await client.runs.wait(thread, "nap", input={"ms": 1}, interrupt_before="*")
    assert (await client.threads.get_state(thread))["next"] == ["before"]


async def test_recursion_limit(client, thread):
    with pytest.raises(Exception, match="[Rr]ecursion"):
        await client.runs.wait(thread, "loop", input={"count": 0}, config={"recursion_limit": 3})
    assert (await client.threads.get_state(thread))["values"]["count"] == 3


async def test_from_an_old_checkpoint(client, thread):
    await client.runs.wait(thread, "echo", input=human("one", id="m1"))
    fork = (await client.threads.get_state(thread))["checkpoint"]
    await client.runs.wait(thread, "echo", input=human("two", id="m2"))
    bare = {key: value for key, value in fork.items() if key != "thread_id"}
    for point in (
        {"checkpoint": fork},
        {"checkpoint": {**bare, "checkpoint_map": None}},
        {"checkpoint_id": fork["checkpoint_id"]},
        {"config": {"configurable": {"checkpoint_id": fork["checkpoint_id"]}}},
    ):
        values = await client.runs.wait(thread, "echo", input=human("three"), **point)
        assert texts(values) == ["one", "You said: one", "three", "You said: three"]


@pytest.mark.beyond_peer("keeps the checkpoint of the last fork in the thread's configuration")
async def test_a_fork_does_not_stick_to_the_thread(client, thread):
    await client.runs.wait(thread, "echo", input=human("one"))
    fork = (await client.threads.get_state(thread))["checkpoint"]["checkpoint_id"]
    await client.runs.wait(thread, "echo", input=human("two"))
    await client.runs.wait(thread, "echo", input=human("three"), config={"configurable": {"checkpoint_id": fork}})
    values = await client.runs.wait(thread, "echo", input=human("four"))
    assert texts(values)[::2] == ["one", "three", "four"]


async def test_configuration_is_merged_and_sticks(client, thread):
    assistant = await client.assistants.create("settings", {"configurable": {"user": "a", "colour": "red"}})
    same = assistant["assistant_id"]
    values = await client.runs.wait(thread, same, input={"seen": []})
    assert (values["seen"][-1]["user"], values["seen"][-1]["colour"]) == ("a", "red")
    values = await client.runs.wait(thread, same, input={"seen": []}, config={"configurable": {"user": "b"}})
    assert (values["seen"][-1]["user"], values["seen"][-1]["colour"]) == ("b", "red")
    values = await client.runs.wait(thread, same, input={"seen": []})
    assert (values["seen"][-1]["user"], values["seen"][-1]["colour"]) == ("b", "red")  # it persists on the thread
    await client.assistants.delete(same)


@pytest.mark.beyond_peer("hands the context to the graph elsewhere")
async def test_context(client, thread):
    values = await client.runs.wait(thread, "settings", input={"seen": []}, context={"mood": "fine"})
    assert values["seen"][-1]["mood"] == "fine"


@pytest.mark.beyond_peer("does not know durability")
async def test_durability_exit_keeps_the_end_only(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0}, durability="exit")
    assert [state["values"]["count"] for state in await client.threads.get_history(thread)] == [5]
    await client.runs.wait(thread, "loop", input={"count": -5}, durability="sync")
    assert len(await client.threads.get_history(thread)) == 8


async def test_stateless(client):
    assert texts(await client.runs.wait(None, "echo", input=human("hi"))) == ["hi", "You said: hi"]
    run = await client.runs.create(None, "echo", input=human("hi"))
    assert run["assistant_id"] == (await client.assistants.get("echo"))["assistant_id"]


@pytest.mark.beyond_peer("deletes the thread whatever on_completion says")
async def test_stateless_threads_go_or_stay(client):
    async def runs_of(thread):
        try:
            return [run["run_id"] for run in await client.runs.list(thread["thread_id"])]
        except NotFoundError:
            return []  # the thread of another stateless run, which has just ended

    for keep in (False, True):
        made = []
        options = {"on_completion": "keep"} if keep else {}
        await client.runs.wait(None, "echo", input=human("hi"), on_run_created=made.append, **options)
        run_id = made[0]["run_id"]
        found = [
            thread
            for thread in await client.threads.search(metadata={"graph_id": "echo"}, limit=1000)
            if run_id in await runs_of(thread)
        ]
        assert len(found) == (1 if keep else 0)


async def test_batch(client):
    runs = await client.runs.create_batch(
        [{"assistant_id": "echo", "input": human("one")}, {"assistant_id": "loop", "input": {"count": 0}}]
    )
    assert len({run["run_id"] for run in runs}) == 2 and len({run["thread_id"] for run in runs}) == 2


@pytest.mark.beyond_peer("answers 400")
async def test_an_empty_batch(client):
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create_batch([])


async def test_after_seconds(client, thread):
    other = (await client.threads.create())["thread_id"]
    never = await client.runs.create(other, "echo", input=human("never"), after_seconds=3600)
    run = await client.runs.create(thread, "echo", input=human("later"), after_seconds=1)
    assert texts(await client.runs.join(thread, run["run_id"])) == ["later", "You said: later"]
    first, made = (await client.threads.get_history(thread))[-1], await client.threads.get(thread)
    assert moment(first["created_at"]) - moment(made["created_at"]) > datetime.timedelta(seconds=0.9)
    assert never["status"] == (await client.runs.get(other, never["run_id"]))["status"] == "pending"
    assert (await client.threads.get(other))["status"] == "busy"
    await client.runs.cancel(other, never["run_id"], wait=True)


async def test_cancel_stops_a_run(client, thread):
    run = await client.runs.create(thread, "nap", input=LONG)
    await is_running(client, thread, run)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
    state = await client.threads.get_state(thread)
    assert state["values"]["log"] == ["before"] and state["next"] == ["sleep"]  # finished steps are kept


@pytest.mark.beyond_peer("makes the thread idle")
async def test_a_cancelled_thread_waits_where_it_was(client, thread):
    run = await client.runs.create(thread, "nap", input=LONG)
    await is_running(client, thread, run)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    found = await client.threads.get(thread)
    assert found["status"] == "interrupted" and found["values"]["log"] == ["before"]
    await client.threads.update_state(thread, {"ms": 1}, as_node="before")
    assert (await client.runs.wait(thread, "nap", input=None))["log"] == ["before", "slept", "after"]


async def test_cancel_without_waiting(client, thread):
    run = await client.runs.create(thread, "nap", input=LONG)
    await is_running(client, thread, run)
    await client.runs.cancel(thread, run["run_id"])

    async def stopped():
        return (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"

    await until(stopped)


@pytest.mark.beyond_peer("keeps the run as one that failed")
async def test_cancel_with_rollback(client, thread):
    await client.runs.wait(thread, "nap", input={"ms": 1})
    before = await client.threads.get_state(thread)
    run = await client.runs.create(thread, "nap", input=LONG)

    async def moved_on():
        return len((await client.threads.get_state(thread))["values"]["log"]) == 4

    await until(moved_on)
    await client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])
    assert await client.threads.get_state(thread) == before
    assert (await client.threads.get(thread))["status"] == "idle"


@pytest.mark.beyond_peer("says 404 to a run that has ended")
async def test_cancel_after_the_end(client, thread):
    run = await client.runs.create(thread, "echo", input=human("hi"))
    await client.runs.join(thread, run["run_id"])
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"


async def test_cancel_before_the_start(client, thread):
    run = await client.runs.create(thread, "echo", input=human("never"), after_seconds=600)
    await client.runs.cancel(thread, run["run_id"])

    async def idle():
        return (await client.threads.get(thread))["status"] == "idle"

    await until(idle)
    assert (await client.threads.get_state(thread))["values"] == {}


@pytest.mark.beyond_peer("has no such endpoint")
async def test_cancel_many(client, unknown):
    threads = [(await client.threads.create())["thread_id"] for _ in range(3)]
    runs = [await client.runs.create(thread, "nap", input=LONG) for thread in threads]
    for thread, run in zip(threads, runs):
        await is_running(client, thread, run)
    await client.runs.cancel_many(thread_id=threads[0], run_ids=[runs[0]["run_id"]])

    def stopped(number):
        async def check():
            return (await client.runs.get(threads[number], runs[number]["run_id"]))["status"] == "interrupted"

        return check

    await until(stopped(0))
    assert (await client.runs.get(threads[1], runs[1]["run_id"]))["status"] == "running"
    await client.runs.cancel_many(status="all")
    await until(stopped(1))
    await until(stopped(2))
    with pytest.raises(UnprocessableEntityError):
        await client.runs.cancel_many()
    with pytest.raises(NotFoundError):
        await client.runs.cancel_many(thread_id=threads[0], run_ids=[unknown])


async def test_delete(client, thread):
    run = await client.runs.create(thread, "echo", input=human("hi"))
    await client.runs.join(thread, run["run_id"])
    assert await client.runs.delete(thread, run["run_id"]) is None
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])
    assert await client.runs.list(thread) == []


async def test_webhook(client, thread):
    with Listener() as listener:
        run = await client.runs.create(thread, "fanout", input={"items": [2]}, webhook=f"{listener.url}/done?x=1")
        sent = await asyncio.to_thread(listener.next)
    assert sent["path"] == "/done?x=1"
    body = sent["body"]
    assert body["run_id"] == run["run_id"] and body["thread_id"] == thread and body["status"] == "success"
    assert body["values"] == {"items": [2], "squares": [4], "total": 4}
    assert body["run_started_at"] <= body["run_ended_at"] <= body["webhook_sent_at"]
    assert not body.get("error")


async def test_webhook_of_a_failure(client, thread):
    with Listener() as listener:
        await client.runs.create(thread, "failing", input={"log": []}, webhook=listener.url)
        body = (await asyncio.to_thread(listener.next))["body"]
    assert body["status"] == "error" and "boom" in str(body["error"])


@pytest.mark.beyond_peer("sends it once, without a type, with messages in a form of their own")
async def test_webhook_is_tried_again(client, thread):
    with Listener(statuses=(503, 200)) as listener:
        await client.runs.wait(thread, "echo", input=human("hi"), webhook=listener.url)
        first = await asyncio.to_thread(listener.next)
        second = await asyncio.to_thread(listener.next)
    assert first["body"]["run_id"] == second["body"]["run_id"]
    assert second["headers"]["Content-Type"].startswith("application/json")
    assert texts(second["body"]["values"]) == ["hi", "You said: hi"]


async def test_langsmith_and_strictness_do_not_disturb(client, thread):
    values = await client.runs.wait(
        thread, "echo", input=human("hi"), langsmith_tracing={"project_name": "p"}, strict_resume=True
    )
    assert texts(values) == ["hi", "You said: hi"]
