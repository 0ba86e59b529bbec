"""GET and PATCH /threads/{id}/branches: the tree of an agent's checkpoints (README.md has the shape)."""

import uuid

import pytest
from plain import Thread, human, identity, texts

ENDPOINT = pytest.mark.beyond_peer("has no such endpoint")


@pytest.fixture
def thread(http):
    return Thread(http)


def content(branch):
    return branch["message"] and branch["message"]["content"]


def head(answer):
    """The branch with the current head."""
    [found] = [each for each in answer["branches"] if each["head_checkpoint_id"] == answer["head"]]
    return found


def move(thread, checkpoint_id, status=200, **more):
    return thread.ask("PATCH", thread.path("/branches"), status, json={"checkpoint_id": checkpoint_id, **more})


@ENDPOINT
def test_an_empty_thread_has_none(thread):
    answer = thread.branches()
    assert answer["head"] is None and answer["branches"] == [] and answer["checkpoint_ns"] is None


def test_a_straight_conversation_is_one_branch(thread):
    thread.say("echo", "one")
    thread.say("echo", "two")
    answer = thread.branches()
    [branch] = answer["branches"]
    history = thread.history()
    assert branch["branch_id"] == identity(history[-1]) and branch["head_checkpoint_id"] == identity(history[0])
    assert branch["parent_branch_id"] is None and branch["fork_checkpoint_id"] is None
    assert branch["leaf"] and branch["current"] and branch["checkpoints"] == 6 and branch["source"] == "input"
    assert content(branch) == "one" and answer["head"] == identity(history[0])


@ENDPOINT
def test_it_names_its_agent(thread, http):
    own = http.get("/assistants/echo").json()["assistant_id"]
    thread.say("echo", "one")
    answer = thread.branches()
    assert answer["assistant_id"] == own and answer["checkpoint_ns"] == f"assistant:{own}"


def test_three_retries_are_four_leaves(thread):
    thread.say("echo", "one", "m1")
    point = thread.before(thread.state()["values"]["messages"][-1]["id"])
    for _ in range(3):
        thread.run("echo", input=None, checkpoint_id=point)
    answer = thread.branches()
    root, *others = answer["branches"]
    assert root["head_checkpoint_id"] == point and not root["leaf"] and content(root) == "one"
    leaves = [branch for branch in others if branch["leaf"]]
    assert len(leaves) == 4 and {content(leaf) for leaf in leaves} == {"You said: one"}
    assert len({leaf["message"]["id"] for leaf in leaves}) == 4
    assert head(answer) == max(leaves, key=lambda leaf: leaf["branch_id"])
    assert [branch["branch_id"] for branch in answer["branches"]] == sorted(b["branch_id"] for b in answer["branches"])


def test_an_edit_is_an_alternative(thread):
    thread.say("echo", "one", "m1")
    thread.say("echo", "two", "m2")
    thread.say("echo", "deux", "m3", checkpoint_id=thread.before("m2"))
    answer = thread.branches()
    root, first, second = answer["branches"]
    assert content(root) == "one" and [content(first), content(second)] == ["two", "deux"]
    for each in (first, second):
        assert each["parent_branch_id"] == root["branch_id"]
        assert each["fork_checkpoint_id"] == root["head_checkpoint_id"] and each["leaf"]
    assert [each["current"] for each in (root, first, second)] == [True, False, True]
    assert second["source"] == "input" and second["run_id"] != first["run_id"]


def test_an_edit_of_an_edit_goes_deeper(thread):
    thread.say("echo", "one", "m1")
    thread.say("echo", "two", "m2", checkpoint_id=thread.before("m1"))
    thread.say("echo", "three", "m3", checkpoint_id=thread.before("m2"))
    answer = thread.branches()
    leaves = [branch for branch in answer["branches"] if branch["leaf"]]
    assert sorted(content(leaf) for leaf in leaves) == ["one", "three", "two"]
    assert content(head(answer)) == "three"
    deepest = head(answer)
    assert deepest["parent_branch_id"] not in (None, answer["branches"][0]["branch_id"])


def test_a_retry_in_the_middle_keeps_what_came_after(thread):
    for number, text in enumerate(("one", "two", "three")):
        thread.say("echo", text, f"m{number}")
    second_answer = thread.state()["values"]["messages"][3]["id"]
    thread.run("echo", input=None, checkpoint_id=thread.before(second_answer))
    answer = thread.branches()
    root, *others = answer["branches"]
    leaves = [branch for branch in others if branch["leaf"]]
    assert [content(leaf) for leaf in leaves] == ["You said: two", "You said: two"]
    assert {leaf["message"]["id"] for leaf in leaves} >= {second_answer}
    assert root["checkpoints"] == 5  # up to the message that was answered twice


def test_a_change_by_hand_is_a_branch(thread):
    thread.say("echo", "one", "m1")
    point = identity(thread.history()[1])
    update = {"messages": [{"type": "ai", "content": "by hand", "id": "h"}]}
    body = {"values": update, "checkpoint_id": point, "as_node": "reply"}
    made = thread.ask("POST", thread.path("/state"), json=body)["checkpoint"]["checkpoint_id"]
    answer = thread.branches()
    branch = head(answer)
    assert branch["branch_id"] == branch["head_checkpoint_id"] == made == answer["head"]
    assert branch["source"] == "update" and content(branch) == "by hand"


def test_a_state_without_messages_has_no_message(thread):
    thread.run("loop", input={"count": 0})
    thread.run("loop", input=None, checkpoint_id=identity(thread.history()[3]))
    assert {content(branch) for branch in thread.branches()["branches"]} == {None}


@ENDPOINT
def test_there_is_no_limit(thread):
    thread.say("echo", "root", "root")
    point = thread.before("root")
    for number in range(60):
        thread.say("echo", f"n{number}", f"n{number}", checkpoint_id=point)
    answer = thread.branches()
    assert [content(branch) for branch in answer["branches"]] == [None, "root", *[f"n{n}" for n in range(60)]]


@ENDPOINT
def test_agents_have_trees_of_their_own(thread):
    thread.say("echo", "one", "m1")
    thread.say("my-assistant", "Hello")
    thread.say("echo", "uno", "m2", checkpoint_id=thread.before("m1", assistant_id="echo"))
    assert len(thread.branches(assistant_id="echo")["branches"]) == 3
    assert len(thread.branches(assistant_id="my-assistant")["branches"]) == 1


@ENDPOINT
def test_the_head_is_moved(thread):
    thread.say("echo", "one", "m1")
    old = identity(thread.state())
    thread.say("echo", "uno", "m2", checkpoint_id=thread.before("m1"))
    history = thread.history()
    answer = move(thread, old)
    assert answer["head"] == old and answer == thread.branches()
    assert [content(branch) for branch in answer["branches"] if branch["current"] and branch["leaf"]] == ["one"]
    assert identity(thread.state()) == old and texts(thread.record()["values"])[0] == "one"
    assert thread.history() == history  # nothing was written
    assert texts(thread.say("echo", "two"))[::2] == ["one", "two"]  # a run goes on from there
    after = thread.branches()
    assert after["head"] == identity(thread.state()) != old


@ENDPOINT
def test_the_head_may_be_in_the_middle(thread):
    thread.run("loop", input={"count": 0})
    middle = thread.history()[2]
    move(thread, identity(middle))
    state = thread.state()
    assert identity(state) == identity(middle) and state["next"] == ["step"]
    assert thread.run("loop", input=None)["count"] == 5
    assert len(thread.branches()["branches"]) == 3


@ENDPOINT
def test_a_head_with_a_question(thread):
    thread.say("approval", "one", "m1")
    asked = identity(thread.state())
    thread.run("approval", command={"resume": "yes"})
    assert thread.record()["status"] == "idle"
    move(thread, asked)
    assert thread.state()["next"] == ["ask"]
    assert thread.run("approval", input=None)["__interrupt__"][0]["value"]["to"] == "one"


@ENDPOINT
def test_a_move_that_is_refused_changes_nothing(thread):
    thread.say("echo", "one")
    before = thread.branches()
    unknown = "1f000000-0000-6000-8000-000000000000"
    assert move(thread, unknown, 404) == {"detail": "Checkpoint not found"}
    move(thread, 3, 422)
    thread.ask("PATCH", thread.path("/branches"), 422, json={})
    thread.ask("PATCH", thread.path("/branches"), 422, content=b"{")
    thread.ask("PATCH", f"/threads/{uuid.uuid4()}/branches", 404, json={"checkpoint_id": unknown})
    thread.ask("GET", f"/threads/{uuid.uuid4()}/branches", 404)
    assert thread.branches() == before
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    assert move(thread, before["head"], 409, assistant_id="echo") == {"detail": "Thread is busy"}
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel?wait=1"), 200)


@ENDPOINT
def test_the_head_survives_a_restart(own_server):
    import httpx

    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        thread.say("echo", "one", "m1")
        old = identity(thread.state())
        thread.say("echo", "uno", "m2", checkpoint_id=thread.before("m1"))
        move(thread, old)
    own_server.kill()
    own_server.restart()
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread.http = http
        assert thread.branches()["head"] == old
        assert texts(thread.run("echo", input=human("two")))[::2] == ["one", "two"]
