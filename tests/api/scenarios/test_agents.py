"""Several agents on one thread: each has its own history of checkpoints."""

import pytest
from plain import Thread, human, identity, texts

SEPARATE = pytest.mark.beyond_peer("has one namespace for all")


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def agents(http):
    """Creates assistants of graphs, and deletes them."""
    made = []

    def make(graph, **more):
        answer = http.post("/assistants", json={"graph_id": graph, "name": f"agent {len(made)}", **more})
        made.append(answer.json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


def test_one_user_and_one_agent(thread, agents):
    agent = agents("echo")
    thread.say(agent, "one")
    assert texts(thread.say(agent, "two")) == ["one", "You said: one", "two", "You said: two"]


@SEPARATE
def test_two_agents_of_one_graph_do_not_see_each_other(thread, agents):
    first, second = agents("echo"), agents("echo")
    thread.say(first, "for the first")
    assert texts(thread.say(second, "for the second")) == ["for the second", "You said: for the second"]
    assert texts(thread.say(first, "again"))[::2] == ["for the first", "again"]
    assert texts(thread.state(assistant_id=first)["values"])[::2] == ["for the first", "again"]
    assert texts(thread.state(assistant_id=second)["values"])[::2] == ["for the second"]


@SEPARATE
def test_each_agent_is_configured_by_itself(thread, agents, http):
    first = agents("settings", config={"configurable": {"user": "a", "colour": "red"}})
    second = agents("settings", config={"configurable": {"user": "b"}})

    def seen(agent, **more):
        seen = thread.run(agent, input={"seen": []}, **more)["seen"][-1]
        return seen["user"], seen["colour"]

    assert seen(first) == ("a", "red")
    assert seen(second) == ("b", None)
    http.patch(f"/assistants/{first}", json={"config": {"configurable": {"user": "changed"}}})
    assert seen(first) == ("changed", None)
    # The configuration of a run persists on the thread, for all its agents.
    assert seen(second, config={"configurable": {"colour": "blue"}}) == ("b", "blue")
    assert seen(first) == ("changed", "blue")


@SEPARATE
def test_state_and_history_are_those_of_the_latest_run(thread, agents):
    first, second = agents("echo"), agents("loop")
    thread.say(first, "hi")
    thread.run(second, input={"count": 0})
    assert thread.state()["values"]["count"] == 5
    assert {state["checkpoint"]["checkpoint_ns"] for state in thread.history()} == {f"assistant:{second}"}
    assert thread.record()["values"]["count"] == 5
    thread.say(first, "once more")
    assert len(thread.state()["values"]["messages"]) == 4
    assert {state["checkpoint"]["checkpoint_ns"] for state in thread.history()} == {f"assistant:{first}"}


@SEPARATE
def test_a_namespace_is_requested_in_three_ways(thread, agents):
    first, second = agents("echo"), agents("echo")
    thread.say(first, "first")
    thread.say(second, "second")
    namespace = f"assistant:{first}"
    for state in (
        thread.state(assistant_id=first),
        thread.state(checkpoint_ns=namespace),
        thread.ask("POST", thread.path("/state/checkpoint"), json={"checkpoint": {"checkpoint_ns": namespace}}),
    ):
        assert texts(state["values"])[0] == "first"
        assert state["checkpoint"]["checkpoint_ns"] == state["parent_checkpoint"]["checkpoint_ns"] == namespace
    for history in (
        thread.history(assistant_id=first),
        thread.history(checkpoint_ns=namespace),
        thread.history(checkpoint={"checkpoint_ns": namespace}),
        thread.ask("GET", thread.path("/history"), params={"assistant_id": first}),
        thread.ask("GET", thread.path("/history"), params={"checkpoint_ns": namespace}),
    ):
        assert len(history) == 3 and texts(history[0]["values"])[0] == "first"
    both = {identity(s) for s in thread.history(assistant_id=first)} | {
        identity(s) for s in thread.history(assistant_id=second)
    }
    assert len(both) == 6


@SEPARATE
def test_a_graph_name_stands_for_its_agent(thread, http):
    thread.say("echo", "hi")
    own = http.get("/assistants/echo").json()["assistant_id"]
    assert thread.state()["checkpoint"]["checkpoint_ns"] == f"assistant:{own}"
    assert thread.state(assistant_id="echo") == thread.state(assistant_id=own)


@SEPARATE
def test_an_agent_without_runs_has_an_empty_state(thread, agents):
    first, second = agents("echo"), agents("echo")
    thread.say(first, "hi")
    state = thread.state(assistant_id=second)
    assert state["values"] == {} and state["next"] == [] and state["checkpoint"] is None
    assert thread.history(assistant_id=second) == []


@SEPARATE
def test_a_question_of_one_survives_the_runs_of_the_other(thread, agents):
    asking, talking = agents("approval"), agents("echo")
    [asked] = thread.say(asking, "may I?")["__interrupt__"]
    before = thread.state(assistant_id=asking)
    assert thread.record()["status"] == "interrupted"
    thread.say(talking, "meanwhile")
    thread.say(talking, "and more")
    after = thread.state(assistant_id=asking)
    assert after == before and [each["id"] for each in after["tasks"][0]["interrupts"]] == [asked["id"]]
    assert thread.state(assistant_id=talking)["tasks"] == []
    values = thread.run(asking, command={"resume": "yes"})
    assert texts(values) == ["may I?", "Approved: yes"]
    assert texts(thread.state(assistant_id=talking)["values"])[::2] == ["meanwhile", "and more"]


@SEPARATE
def test_two_questions_wait_side_by_side(thread, agents):
    first, second = agents("approval"), agents("approval")
    one = thread.say(first, "first")["__interrupt__"][0]
    two = thread.say(second, "second")["__interrupt__"][0]
    assert one["value"]["to"] == "first" and two["value"]["to"] == "second"
    assert thread.run(first, command={"resume": "to the first"})["verdict"] == "to the first"
    assert thread.state(assistant_id=second)["next"] == ["ask"]
    assert thread.run(second, command={"resume": {two["id"]: "to the second"}})["verdict"] == "to the second"


@SEPARATE
def test_tool_messages_stay_with_their_agent(thread, agents):
    worker, talker = agents("tools"), agents("echo")
    assert [m["type"] for m in thread.say(worker, "sky")["messages"]] == ["human", "ai", "tool", "ai"]
    assert [m["type"] for m in thread.say(talker, "hi")["messages"]] == ["human", "ai"]


def test_one_agent_receives_the_message_of_the_other(thread, agents):
    first, second = agents("echo"), agents("my-assistant")
    answer = thread.say(first, "find logistics parks")["messages"][-1]["content"]
    values = thread.run(
        second,
        input={
            "messages": [
                {"role": "user", "content": "What did the first find?"},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": "How are you?"},
            ]
        },
    )
    assert texts(values)[-4:] == [
        "What did the first find?",
        "You said: find logistics parks",
        "How are you?",
        "I am fine.",
    ]


@SEPARATE
def test_an_edit_reaches_the_right_agent(thread, agents):
    """M1→A→M2, M3→B→M4, M5→A→M6; M1 is edited: A replies again from before M1, B is unchanged."""
    a, b = agents("echo"), agents("echo")
    thread.say(a, "M1", "m1")
    thread.say(b, "M3", "m3")
    thread.say(a, "M5", "m5")
    of_b = thread.history(assistant_id=b)
    point = thread.before("m1", assistant_id=a)
    values = thread.say(a, "M1 edited", "m1e", checkpoint_id=point)
    assert texts(values) == ["M1 edited", "You said: M1 edited"]
    assert thread.history(assistant_id=b) == of_b
    assert texts(thread.state(assistant_id=a)["values"])[0] == "M1 edited"
    # B runs again, with the new reply of A in its input.
    point = thread.before("m3", assistant_id=b)
    again = thread.say(b, f"M3 about {values['messages'][-1]['content']}", "m3e", checkpoint_id=point)
    assert texts(again)[0] == "M3 about You said: M1 edited" and len(again["messages"]) == 2
    old = [state for state in thread.history(assistant_id=a) if texts(state["values"])[-1:] == ["You said: M5"]]
    assert texts(old[0]["values"])[::2] == ["M1", "M5"]  # the old branch is still there


@SEPARATE
def test_an_answer_is_made_again_by_its_agent(thread, agents):
    a, b = agents("echo"), agents("echo")
    thread.say(a, "for A", "m1")
    thread.say(b, "for B", "m2")
    first = thread.state(assistant_id=a)["values"]["messages"][-1]["id"]
    point = thread.before(first, assistant_id=a)
    values = thread.run(a, input=None, checkpoint_id=point)
    assert texts(values) == ["for A", "You said: for A"] and values["messages"][-1]["id"] != first
    assert len(thread.history(assistant_id=b)) == 3


@pytest.mark.parametrize("way", ["configurable", "checkpoint_id", "checkpoint"])
def test_a_fork_is_requested_in_three_ways(thread, agents, way):
    agent = agents("echo")
    thread.say(agent, "one")
    point = identity(thread.state())
    thread.say(agent, "two")
    body = {
        "configurable": {"config": {"configurable": {"checkpoint_id": point}}},
        "checkpoint_id": {"checkpoint_id": point},
        "checkpoint": {"checkpoint": {"checkpoint_id": point, "checkpoint_ns": "", "checkpoint_map": None}},
    }[way]
    assert texts(thread.say(agent, "other", **body))[::2] == ["one", "other"]
    assert len(thread.history()) == 9
    parents = [(state["parent_checkpoint"] or {}).get("checkpoint_id") for state in thread.history()]
    assert parents.count(point) == 2


@SEPARATE
def test_a_checkpoint_of_another_agent_is_not_found(thread, agents):
    a, b = agents("echo"), agents("echo")
    thread.say(a, "hi")
    point = identity(thread.state(assistant_id=a))
    answer = thread.http.post(
        thread.path("/runs/wait"), json={"assistant_id": b, "input": human("x"), "checkpoint_id": point}
    )
    assert answer.status_code in (404, 422) or "__error__" in answer.json(), answer.text
    assert thread.history(assistant_id=b) == []


@SEPARATE
def test_a_run_may_choose_its_namespace(thread, agents):
    a, b = agents("echo"), agents("echo")
    shared = {"config": {"configurable": {"checkpoint_ns": "room"}}}
    thread.say(a, "from A", **shared)
    assert texts(thread.say(b, "from B", **shared))[::2] == ["from A", "from B"]
    assert texts(thread.state(checkpoint_ns="room")["values"])[::2] == ["from A", "from B"]
    assert thread.history(assistant_id=a) == []


@SEPARATE
def test_subgraphs_lie_below_their_agent(thread, agents):
    agent = agents("nested")
    thread.run(agent, input={**human("hi"), "ask": True})
    [task] = thread.state()["tasks"]
    namespace = task["checkpoint"]["checkpoint_ns"]
    assert namespace == f"assistant:{agent}|child:{task['id']}"
    inner = thread.history(checkpoint={"checkpoint_ns": namespace})
    assert {state["checkpoint"]["checkpoint_ns"] for state in inner} == {namespace}
    assert all(state["checkpoint"]["checkpoint_ns"] == f"assistant:{agent}" for state in thread.history())


@SEPARATE
def test_the_stream_names_the_agent(thread, agents):
    agent = agents("echo")
    parts = thread.stream(agent, input=human("hi"), stream_mode=["events"])
    event, metadata, _ = parts[0]
    assert event == "metadata" and metadata["run_id"]
    assert metadata["thread_id"] == thread.id and metadata["assistant_id"] == agent
    assert metadata["checkpoint_ns"] == f"assistant:{agent}"
    event, end, _ = parts[-1]
    assert event == "end" and end["run_id"] == metadata["run_id"] and end["status"] == "success"
    assert end["checkpoint_id"] == identity(thread.state())
    assert {event for event, _, _ in parts[1:-1]} == {"events"}


@SEPARATE
def test_the_end_of_a_run_is_where_the_next_branch_begins(thread, agents):
    agent = agents("echo")
    _, end, _ = thread.stream(agent, input=human("one"))[-1]
    thread.say(agent, "two")
    body = {"config": {"configurable": {"checkpoint_id": end["checkpoint_id"]}}}
    assert texts(thread.say(agent, "branch", **body))[::2] == ["one", "branch"]


@SEPARATE
def test_updates_go_to_the_agent_that_is_named(thread, agents):
    a, b = agents("echo"), agents("echo")
    thread.say(a, "hi", "m1")
    thread.say(b, "hi", "m2")
    update = {"values": {"messages": [{"type": "human", "content": "changed", "id": "m1"}]}, "assistant_id": a}
    thread.ask("POST", thread.path("/state"), json=update)
    assert texts(thread.state(assistant_id=a)["values"])[0] == "changed"
    assert texts(thread.state(assistant_id=b)["values"])[0] == "hi"


@SEPARATE
def test_a_copy_has_all_agents(thread, agents):
    a, b = agents("echo"), agents("echo")
    thread.say(a, "for A")
    thread.say(b, "for B")
    other = Thread.__new__(Thread)
    other.http, other.id = thread.http, thread.ask("POST", thread.path("/copy"))["thread_id"]
    for agent in (a, b):
        assert other.state(assistant_id=agent)["values"] == thread.state(assistant_id=agent)["values"]
    other.say(a, "more")
    assert len(thread.state(assistant_id=a)["values"]["messages"]) == 2


# ---- GET /threads/{id}/agents

LISTED = pytest.mark.beyond_peer("has no such endpoint")


def listed(thread):
    """Returns the agents of the thread, which must agree with the histories."""
    answer = thread.ask("GET", thread.path("/agents"))
    for each in answer:
        params = {"checkpoint_ns": each["checkpoint_ns"]}
        history = thread.history(**params)
        assert each["checkpoints"] == len(history) and each["graph_id"] == history[0]["metadata"]["graph_id"]
        assert each["created_at"] == history[-1]["created_at"] and each["updated_at"] == history[0]["created_at"]
        assert each["head_checkpoint_id"] == identity(thread.state(**params))
    return answer


@LISTED
def test_an_empty_thread_has_no_agents(thread):
    assert listed(thread) == []


@LISTED
def test_agents_are_listed_in_the_order_of_first_use(thread, agents):
    second, first = agents("echo"), agents("echo")
    for each in (first, second, first):
        thread.say(each, "hi")
    thread.say("my-assistant", "Hello", config={"configurable": {"checkpoint_ns": "mine"}})
    own = thread.http.get("/assistants/my-assistant").json()["assistant_id"]
    found = listed(thread)
    assert [each["assistant_id"] for each in found] == [first, second, own]
    assert [each["checkpoint_ns"] for each in found] == [f"assistant:{first}", f"assistant:{second}", "mine"]
    assert [each["graph_id"] for each in found] == ["echo", "echo", "my-assistant"]
    assert [each["checkpoints"] for each in found] == [6, 3, 3]


@LISTED
def test_a_listed_agent_has_the_chosen_head(thread):
    thread.say("echo", "one")
    old = identity(thread.state())
    thread.say("echo", "two")
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": old})
    [each] = listed(thread)
    assert each["head_checkpoint_id"] == old and each["checkpoints"] == 6


@LISTED
def test_subgraphs_are_not_listed(thread):
    thread.run("nested", input={**human("hi"), "ask": True})
    [each] = listed(thread)
    assert each["graph_id"] == "nested"


@LISTED
def test_agents_of_an_unknown_thread(thread):
    thread.ask("GET", "/threads/00000000-0000-4000-8000-000000000000/agents", 404)
    thread.ask("GET", "/threads/not-a-uuid/agents", 422)
