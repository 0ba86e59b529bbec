"""GET and PATCH /threads/{id}/branches: the tree of an agent's checkpoints (README.md has the shape)."""

import threading
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
def test_an_empty_thread_has_no_branches(thread):
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


def test_a_retry_in_the_middle_keeps_later_messages(thread):
    for number, text in enumerate(("one", "two", "three")):
        thread.say("echo", text, f"m{number}")
    second_answer = thread.state()["values"]["messages"][3]["id"]
    thread.run("echo", input=None, checkpoint_id=thread.before(second_answer))
    answer = thread.branches()
    root, *others = answer["branches"]
    leaves = [branch for branch in others if branch["leaf"]]
    assert [content(leaf) for leaf in leaves] == ["You said: two", "You said: two"]
    assert {leaf["message"]["id"] for leaf in leaves} >= {second_answer}
    assert root["checkpoints"] == 5  # up to the message with two replies


def test_a_state_update_is_a_branch(thread):
    thread.say("echo", "one", "m1")
    point = identity(thread.history()[1])
    update = {"messages": [{"type": "ai", "content": "by hand", "id": "h"}]}
    body = {"values": update, "checkpoint_id": point, "as_node": "reply"}
    made = thread.ask("POST", thread.path("/state"), json=body)["checkpoint"]["checkpoint_id"]
    answer = thread.branches()
    branch = head(answer)
    assert branch["branch_id"] == branch["head_checkpoint_id"] == made == answer["head"]
    assert branch["source"] == "update" and content(branch) == "by hand"


def test_a_branch_has_the_beginning_of_its_answer(thread):
    thread.say("echo", "one", "m1")
    point = thread.before("m1")
    silent = {"type": "ai", "id": "a1", "content": ""}
    long = {"type": "ai", "id": "a2", "content": [{"type": "text", "text": "é" * 99 + "x" + "é" * 50}]}
    asked, more = ({"type": "human", "id": each, "content": "one"} for each in ("m2", "m3"))
    for said in ([asked, silent, long], [asked, silent, more, long], [long]):
        body = {"values": {"messages": said}, "checkpoint_id": point, "as_node": "reply"}
        thread.ask("POST", thread.path("/state"), json=body)
    leaves = [branch for branch in thread.branches()["branches"] if branch["leaf"]]
    assert [leaf["answer"] for leaf in leaves] == ["You said: one", "é" * 99 + "x", None, None]


def test_a_state_without_messages_has_no_message(thread):
    thread.run("loop", input={"count": 0})
    thread.run("loop", input=None, checkpoint_id=identity(thread.history()[3]))
    assert {content(branch) for branch in thread.branches()["branches"]} == {None}


@ENDPOINT
def test_the_number_of_branches_is_unlimited(thread):
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
    assert thread.history() == history  # no writes
    assert texts(thread.say("echo", "two"))[::2] == ["one", "two"]  # a run continues from there
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
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "echo", "input": {}, "after_seconds": 600})
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


@ENDPOINT
def test_a_head_deleted_with_its_run_is_not_used(thread):
    thread.say("echo", "one", "m1")
    thread.say("echo", "two")
    [_, first] = thread.ask("GET", thread.path("/runs"))
    thread.say("my-assistant", "Hello")  # the latest run of the thread is another agent's
    chosen = [state for state in thread.history(assistant_id="echo") if state["metadata"]["run_id"] == first["run_id"]]
    move(thread, identity(chosen[0]), assistant_id="echo")
    thread.ask("DELETE", thread.path(f"/runs/{first['run_id']}"), 204)
    assert thread.branches(assistant_id="echo")["head"] == identity(thread.state(assistant_id="echo"))
    assert texts(thread.say("echo", "three"))[-2:] == ["three", "You said: three"]


# ---- names


def name(thread, branch, text, status=200, **params):
    path = thread.path(f"/branches/{branch['branch_id'] if isinstance(branch, dict) else branch}")
    return thread.ask("PATCH", path, status, params=params, json={"name": text})


def names(thread, **params):
    return [branch["name"] for branch in thread.branches(**params)["branches"]]


@pytest.fixture
def forked(thread):
    """one, then two or deux."""
    thread.say("echo", "one", "m1")
    thread.say("echo", "two", "m2")
    thread.say("echo", "deux", "m3", checkpoint_id=identity(thread.history()[3]))
    return thread


@ENDPOINT
def test_branches_are_named(forked):
    root, first, second = forked.branches()["branches"]
    assert names(forked) == [None, None, None]
    assert name(forked, first, "English") == {**first, "name": "English"}
    assert name(forked, second, "Français \U0001f1eb\U0001f1f7") == {**second, "name": "Français \U0001f1eb\U0001f1f7"}
    assert name(forked, root, "x" * 100)["name"] == "x" * 100
    assert names(forked) == ["x" * 100, "English", "Français \U0001f1eb\U0001f1f7"]
    assert name(forked, first, "Anglais")["name"] == "Anglais"
    assert name(forked, second, None) == second and names(forked) == ["x" * 100, "Anglais", None]
    kept = forked.record()["metadata"]["branch_names"]
    assert kept == {root["branch_id"]: "x" * 100, first["branch_id"]: "Anglais"}
    name(forked, first, None)
    name(forked, root, None)
    assert "branch_names" not in forked.record()["metadata"]


@ENDPOINT
def test_names_do_not_disturb_other_metadata(http):
    thread = Thread(http, metadata={"title": "T", "n": 1.0})
    thread.say("echo", "one")
    before = thread.record()["metadata"]
    [branch] = thread.branches()["branches"]
    name(thread, branch, "main")
    assert thread.record()["metadata"] == {**before, "branch_names": {branch["branch_id"]: "main"}}
    name(thread, branch, None)
    assert thread.record()["metadata"] == before
    for odd in ("x", 3, ["x"]):
        thread.ask("PATCH", thread.path(""), json={"metadata": {"branch_names": odd}})
        assert names(thread) == [None]
        assert "branch_names" in name(thread, branch, "main", 422)["detail"]
        name(thread, branch, None)
        assert thread.record()["metadata"]["branch_names"] == odd
    for odd in (None, {branch["branch_id"]: 3, "y": None}):
        thread.ask("PATCH", thread.path(""), json={"metadata": {"branch_names": odd}})
        assert names(thread) == [None]
        name(thread, branch, "main")
        assert names(thread) == ["main"]


@ENDPOINT
def test_runs_do_not_carry_names(forked):
    root, *_ = forked.branches()["branches"]
    name(forked, root, "main")
    forked.say("echo", "three")
    assert "branch_names" in forked.record()["metadata"]
    assert all("branch_names" not in run["metadata"] for run in forked.ask("GET", forked.path("/runs")))
    assert all("branch_names" not in state["metadata"] for state in forked.history())
    forked.run("echo", input=human("four"), metadata={"branch_names": "one's own"})
    assert forked.state()["metadata"]["branch_names"] == "one's own"


@ENDPOINT
def test_a_name_stays_with_its_checkpoint(forked):
    _, first, _ = forked.branches()["branches"]
    name(forked, first, "English")
    middle = forked.ask("GET", forked.path("/messages"), params={"checkpoint_id": first["head_checkpoint_id"]})[
        "messages"
    ][2]
    forked.run("echo", input=None, checkpoint_id=middle["checkpoint_id"])  # another reply to the same message
    named = [branch for branch in forked.branches()["branches"] if branch["name"]]
    assert [branch["branch_id"] for branch in named] == [first["branch_id"]] and not named[0]["leaf"]


@ENDPOINT
def test_agents_name_their_own(thread, http):
    thread.say("echo", "one")
    thread.say("my-assistant", "Hello")
    [branch] = thread.branches(assistant_id="echo")["branches"]
    assert name(thread, branch, "main", 404) == {"detail": "Branch not found"}
    assert name(thread, branch, "main", assistant_id="echo")["name"] == "main"
    own = http.get("/assistants/echo").json()["assistant_id"]
    assert name(thread, branch, "other", checkpoint_ns=f"assistant:{own}")["name"] == "other"
    assert names(thread, assistant_id="echo") == ["other"] and names(thread, assistant_id="my-assistant") == [None]


@ENDPOINT
def test_invalid_names_are_refused(forked):
    root, first, _ = forked.branches()["branches"]
    path = forked.path(f"/branches/{first['branch_id']}")
    for body in ({"name": ""}, {"name": "x" * 101}, {"name": 3}, {"name": ["x"]}, {"name": True}, {}):
        assert forked.ask("PATCH", path, 422, json=body)["detail"].startswith("name: expected")
    forked.ask("PATCH", path, 422, json={"name": "Bearer abcdefghijklmnopqrstuvwxyz0123456789"})
    forked.ask("PATCH", path, 422, content=b"{")
    for nothing in (first["head_checkpoint_id"], str(uuid.uuid4()), "x", "a|b"):
        assert forked.ask("PATCH", forked.path(f"/branches/{nothing}"), 404, json={"name": "x"}) == {
            "detail": "Branch not found"
        }
    forked.ask("PATCH", f"/threads/{uuid.uuid4()}/branches/{root['branch_id']}", 404, json={"name": "x"})
    empty = Thread(forked.http)
    empty.ask("PATCH", empty.path(f"/branches/{root['branch_id']}"), 404, json={"name": "x"})
    assert names(forked) == [None] * 3 and "branch_names" not in forked.record()["metadata"]


@ENDPOINT
def test_branches_are_named_while_a_run_is_active(thread):
    thread.say("echo", "one")
    [branch] = thread.branches()["branches"]
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    assert name(thread, branch, "main", assistant_id="echo")["name"] == "main"
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel?wait=1"), 200)
    assert names(thread, assistant_id="echo") == ["main"]


# ---- the end of branches


def cut(thread, branch, status=204, **params):
    identity = branch["branch_id"] if isinstance(branch, dict) else branch
    return thread.ask("DELETE", thread.path(f"/branches/{identity}"), status, params=params)


def usage(thread):
    return thread.ask("POST", "/threads/prune", json={"thread_ids": [thread.id], "strategy": "delete", "dry_run": True})


@ENDPOINT
def test_a_branch_is_removed(forked):
    history = forked.history()
    root, first, second = forked.branches()["branches"]
    name(forked, root, "trunk")
    name(forked, first, "English")
    name(forked, second, "French")
    before = usage(forked)
    cut(forked, first)
    gone = {identity(state) for state in history} - {identity(state) for state in forked.history()}
    assert len(gone) == first["checkpoints"] == 3 and first["branch_id"] in gone
    answer = forked.branches()
    [left] = answer["branches"]  # the remaining branches have merged
    assert left["branch_id"] == root["branch_id"] and left["head_checkpoint_id"] == second["head_checkpoint_id"]
    assert left["name"] == "French" and left["checkpoints"] == 6 and answer["head"] == left["head_checkpoint_id"]
    assert forked.record()["metadata"]["branch_names"] == {root["branch_id"]: "trunk", second["branch_id"]: "French"}
    assert [state for state in history if identity(state) not in gone] == forked.history()
    after = usage(forked)
    assert after["checkpoints"] == before["checkpoints"] - 3 and after["bytes"] < before["bytes"]
    assert texts(forked.say("echo", "three"))[::2] == ["one", "deux", "three"]
    assert cut(forked, first, 404) == {"detail": "Branch not found"}


@ENDPOINT
def test_everything_that_grows_from_a_branch_goes(forked):
    root, first, second = forked.branches()["branches"]
    for text in ("drei", "tre"):
        forked.say("echo", text, checkpoint_id=second["head_checkpoint_id"])
    assert len(forked.branches()["branches"]) == 5
    cut(forked, second)
    answer = forked.branches()
    [left] = answer["branches"]
    assert left["head_checkpoint_id"] == first["head_checkpoint_id"] == answer["head"] == identity(forked.state())
    assert texts(forked.record()["values"])[::2] == ["one", "two"]
    assert texts(forked.say("echo", "three"))[::2] == ["one", "two", "three"]


@ENDPOINT
def test_the_newest_leaf_becomes_the_head(forked):
    root, first, second = forked.branches()["branches"]
    forked.say("echo", "uno", checkpoint_id=root["branch_id"])
    tree = forked.branches()
    newest = head(tree)
    [old] = [branch for branch in tree["branches"] if branch["head_checkpoint_id"] == first["head_checkpoint_id"]]
    move(forked, old["head_checkpoint_id"])
    cut(forked, second)  # not where the head is
    assert forked.branches()["head"] == old["head_checkpoint_id"]
    merged = head(forked.branches())
    cut(forked, merged)
    assert forked.record()["state_updated_at"] == forked.record()["updated_at"]
    assert forked.branches()["head"] == newest["head_checkpoint_id"] == identity(forked.state())
    assert texts(forked.record()["values"])[0] == "uno"
    assert [texts(state["values"]) for state in forked.history()][-1] == []  # the input that both branches share


@ENDPOINT
def test_the_new_head_shows_its_interrupt(thread):
    thread.say("approval", "one")
    asked = identity(thread.state())
    fork = thread.branches()["branches"][0]["branch_id"]
    thread.say("approval", "uno", checkpoint_id=fork)
    thread.run("approval", command={"resume": "yes"})
    assert thread.record()["status"] == "idle"
    cut(thread, head(thread.branches()))
    record = thread.record()
    assert record["status"] == "interrupted" and identity(thread.state()) == asked
    [[question]] = record["interrupts"].values()
    assert question["value"]["to"] == "one"
    assert "__interrupt__" not in thread.run("approval", command={"resume": "yes"})


@ENDPOINT
def test_subgraphs_go_with_their_branch(thread):
    thread.run("nested", input={**human("hi"), "ask": True})
    root = thread.branches()["branches"][0]["branch_id"]
    [task] = thread.state()["tasks"]
    space = task["checkpoint"]["checkpoint_ns"]
    thread.run("nested", input={**human("ho"), "ask": True}, checkpoint_id=root)
    [other] = thread.state()["tasks"]
    assert thread.history(checkpoint_ns=space) and thread.history(checkpoint_ns=other["checkpoint"]["checkpoint_ns"])
    kept = thread.history(checkpoint_ns=other["checkpoint"]["checkpoint_ns"])
    first = thread.branches()["branches"][1]
    assert cut(thread, first, 404, checkpoint_ns=space) == {"detail": "Branch not found"}
    inner = thread.branches(checkpoint_ns=space)["branches"][0]
    assert "subgraph" in cut(thread, inner, 422, checkpoint_ns=space)["detail"]
    cut(thread, first)
    assert thread.history(checkpoint_ns=space) == []
    assert thread.history(checkpoint_ns=other["checkpoint"]["checkpoint_ns"]) == kept
    assert "__interrupt__" not in thread.run("nested", command={"resume": "yes"})


@ENDPOINT
def test_the_whole_conversation_is_not_a_branch(thread, forked):
    before = forked.branches()
    detail = {"detail": "The branch is the whole conversation: delete the thread instead"}
    assert cut(forked, before["branches"][0], 409) == detail
    assert forked.branches() == before
    cut(forked, before["branches"][1])
    assert cut(forked, before["branches"][0], 409) == detail


@ENDPOINT
def test_retries_of_the_first_message_are_removed(thread):
    thread.say("echo", "one")
    fork = thread.branches()["branches"][0]["branch_id"]
    for text in ("two", "three"):
        thread.say("echo", text, checkpoint_id=fork)
    answers = [branch for branch in thread.branches()["branches"] if branch["leaf"]]
    for number, branch in ((2, answers[0]), (1, answers[2])):
        cut(thread, branch)
        first = thread.ask("GET", thread.path("/messages"))["messages"][0]
        assert len(first["alternatives"]) == number
    assert texts(thread.state()["values"])[0] == "two"
    thread.say("echo", "four", checkpoint_id=first["fork_checkpoint_id"])
    assert len(thread.ask("GET", thread.path("/messages"))["messages"][0]["alternatives"]) == 2


@ENDPOINT
def test_agents_lose_their_own(thread):
    thread.say("my-assistant", "Hello")
    thread.say("echo", "one")
    point = thread.branches()["branches"][0]["branch_id"]
    thread.say("echo", "uno", checkpoint_id=point)
    thread.say("my-assistant", "Hello")
    before = thread.history(assistant_id="my-assistant")
    branches = thread.branches(assistant_id="echo")["branches"]
    cut(thread, branches[1], 404)
    cut(thread, branches[2], assistant_id="echo")
    assert texts(thread.state(assistant_id="echo")["values"]) == ["one", "You said: one"]
    assert thread.history(assistant_id="my-assistant") == before
    assert texts(thread.record()["values"])[-1] == texts(before[0]["values"])[-1]  # that of the latest run


@ENDPOINT
def test_a_branch_is_not_removed_while_a_run_is_active(forked):
    before = forked.branches()
    run = forked.ask("POST", forked.path("/runs"), json={"assistant_id": "echo", "input": {}, "after_seconds": 600})
    assert cut(forked, before["branches"][1], 409, assistant_id="echo") == {"detail": "Thread is busy"}
    forked.ask("POST", forked.path(f"/runs/{run['run_id']}/cancel?wait=1"), 200)
    assert forked.branches(assistant_id="echo") == before
    cut(forked, before["branches"][1], assistant_id="echo")


@ENDPOINT
def test_removing_an_unknown_branch(forked):
    before = forked.branches()
    for nothing in (before["branches"][1]["head_checkpoint_id"], str(uuid.uuid4()), "x"):
        assert cut(forked, nothing, 404) == {"detail": "Branch not found"}
    forked.ask("DELETE", f"/threads/{uuid.uuid4()}/branches/{before['branches'][1]['branch_id']}", 404)
    forked.ask("DELETE", "/threads/x/branches/x", 422)
    assert cut(forked, before["branches"][1], 404, assistant_id="nobody")
    assert forked.branches() == before


@ENDPOINT
def test_runs_that_begin_while_branches_are_removed(forked):
    """Either the run or the removal is first; no dangling checkpoints are left."""
    root = forked.branches()["branches"][0]
    for number in range(8):
        forked.say("echo", f"n{number}", checkpoint_id=root["head_checkpoint_id"])
    leaves = [branch for branch in forked.branches()["branches"] if branch["leaf"]]
    runs = []

    def run(branch):
        body = {"assistant_id": "echo", "input": human("more"), "checkpoint_id": branch["head_checkpoint_id"]}
        answer = forked.http.post(forked.path("/runs/wait"), json=body)
        runs.append((branch, answer.status_code, answer.text))

    threads = [threading.Thread(target=run, args=(branch,)) for branch in leaves[:4]]
    for each in threads:
        each.start()
    removed = {}
    for branch in leaves[:8]:
        path = forked.path(f"/branches/{branch['branch_id']}")
        while (status := forked.http.delete(path).status_code) == 409:
            pass
        removed[branch["branch_id"]] = status
    for each in threads:
        each.join()
    assert set(removed.values()) == {204}
    states = {identity(state): state for state in forked.history()}
    for state in states.values():
        parent = (state["parent_checkpoint"] or {}).get("checkpoint_id")
        assert parent in states or identity(state) == root["branch_id"], state
    assert forked.branches()["head"] in states and forked.record()["status"] == "idle"


@ENDPOINT
def test_removals_survive_a_crash(own_server):
    import httpx

    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        thread.say("echo", "one")
        point = identity(thread.history()[-1])
        thread.say("echo", "two", checkpoint_id=point)
        cut(thread, thread.branches()["branches"][2])
        before = thread.history(), thread.branches(), thread.record()
    own_server.kill()
    own_server.restart()
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread.http = http
        assert (thread.history(), thread.branches(), thread.record()) == before
        assert texts(thread.say("echo", "more"))[::2] == ["one", "more"]
