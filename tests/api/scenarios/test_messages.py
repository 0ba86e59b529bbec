"""GET /threads/{id}/messages: the origin of messages, the fork for an edit or a retry, and the
alternatives."""

import json
import re
import subprocess
import uuid

import httpx
import pytest
from plain import Thread, human, identity, texts
from server import binary

pytestmark = pytest.mark.beyond_peer("has no such endpoint")
UNKNOWN = "1f000000-0000-6000-8000-000000000000"


@pytest.fixture
def thread(http):
    return Thread(http)


# ---- the rule, made from a whole history


def parent_of(states, own):
    parent = (states[own].get("parent_checkpoint") or {}).get("checkpoint_id")
    return parent if parent in states else None


def source(states, own):
    return states[own]["metadata"]["source"]


def ids(state):
    return [message["id"] for message in state["values"].get("messages", [])]


class Tree:
    """All checkpoints of an agent, by id."""

    def __init__(self, thread, **params):
        self.states = {identity(state): state for state in reversed(thread.history(**params))}
        self.children = {own: [] for own in self.states}
        for own in self.states:
            parent = parent_of(self.states, own)
            if parent:
                self.children[parent].append(own)

    def way(self, head):
        found = [head]
        while parent_of(self.states, found[0]):
            found.insert(0, parent_of(self.states, found[0]))
        return found

    def is_input(self, own):
        return source(self.states, own) == "input"

    def inputs_below(self, own):
        found = []
        for child in self.children[own]:
            if self.is_input(child):
                found += [child, *self.inputs_below(child)]
        return found

    def is_written(self, own):
        """Returns whether this is an update that added a human message."""
        parent = parent_of(self.states, own)
        before = ids(self.states[parent]) if parent else []
        messages = self.states[own]["values"].get("messages", [])
        return source(self.states, own) == "update" and any(
            m["type"] == "human" and m["id"] not in before for m in messages
        )

    def went_on(self, own):
        return any(not self.is_input(child) and not self.is_written(child) for child in self.children[own])

    def leaves(self, own, without):
        below = [child for child in self.children[own] if child not in without]
        return [leaf for child in below for leaf in self.leaves(child, without)] or [own]

    def turn(self, start):
        """Returns (fork, alternatives) of the turn that begins there."""
        top = start
        while parent_of(self.states, top) and self.is_input(parent_of(self.states, top)):
            top = parent_of(self.states, top)
        before = parent_of(self.states, top)
        inputs = self.inputs_below(before) if before else [top, *self.inputs_below(top)]
        written = [child for own in [before, *inputs] if own for child in self.children[own] if self.is_written(child)]
        others = sorted([own for own in inputs if self.is_input(own) and self.went_on(own)] + written) or [start]
        heads = [max(self.leaves(own, {*inputs, *written} - {own})) for own in others]
        return before or (top if self.is_input(top) else None), list(zip(others, heads, strict=True))


def origins(thread, **params):
    """Returns the response, which must equal the one derived from the history."""
    answer = thread.ask("GET", thread.path("/messages"), params=params)
    where = {key: value for key, value in params.items() if key != "checkpoint_id"}
    tree = Tree(thread, **where)
    way = tree.way(answer["checkpoint_id"])
    messages = tree.states[answer["checkpoint_id"]]["values"].get("messages", [])
    assert answer["thread_id"] == thread.id
    assert answer["checkpoint_ns"] == tree.states[way[0]]["checkpoint"]["checkpoint_ns"]
    assert [each["id"] for each in answer["messages"]] == [message["id"] for message in messages]
    for each, message in zip(answer["messages"], messages, strict=True):
        [first, *_] = [own for own in way if message["id"] in ids(tree.states[own])]
        state = tree.states[first]
        assert each["type"] == message["type"] and each["checkpoint_id"] == first
        assert each["created_at"] == state["created_at"] and each["run_id"] == state["metadata"].get("run_id")
        if message["type"] != "human":
            assert each["fork_checkpoint_id"] is None and each["alternatives"] == []
        else:
            start = first if source(tree.states, first) == "update" else parent_of(tree.states, first)
            fork, others = tree.turn(start)
            assert each["fork_checkpoint_id"] == fork
            assert [(other["branch_id"], other["head_checkpoint_id"]) for other in each["alternatives"]] == others
            assert [other["branch_id"] for other in each["alternatives"] if other["current"]] == [start]
            for other in each["alternatives"]:
                assert other["created_at"] == tree.states[other["branch_id"]]["created_at"]
    return answer


def said(thread, number=-1, **params):
    """Returns the human message of that number."""
    return [each for each in origins(thread, **params)["messages"] if each["type"] == "human"][number]


def count(each):
    """Returns its position and the number of alternatives, as the switcher shows them."""
    [current] = [i for i, other in enumerate(each["alternatives"]) if other["current"]]
    return current + 1, len(each["alternatives"])


def again(thread, each, text, assistant="echo", **body):
    """Edits or retries a message: a run from its fork, with a new id."""
    return thread.say(assistant, text, str(uuid.uuid4()), checkpoint_id=each["fork_checkpoint_id"], **body)


def texts_at(thread, checkpoint_id):
    return texts(thread.ask("GET", thread.path(f"/state/{checkpoint_id}"))["values"])


def choices(thread, each):
    """Returns the human messages of each alternative's conversation."""
    return [texts_at(thread, other["head_checkpoint_id"])[::2] for other in each["alternatives"]]


# ---- origins


def test_an_empty_thread_has_no_messages(thread):
    expected = {
        "thread_id": thread.id,
        "assistant_id": None,
        "checkpoint_ns": None,
        "checkpoint_id": None,
        "messages": [],
    }
    assert thread.ask("GET", thread.path("/messages")) == expected


def test_agents_without_messages(thread, http):
    own, mine = (http.get(f"/assistants/{name}").json()["assistant_id"] for name in ("echo", "my-assistant"))
    thread.say("echo", "one")
    for name, found in (("my-assistant", mine), (mine, mine), (other := str(uuid.uuid4()), other)):
        answer = thread.ask("GET", thread.path("/messages"), params={"assistant_id": name})
        assert answer["checkpoint_id"] is None and answer["messages"] == []
        assert answer["assistant_id"] == found and answer["checkpoint_ns"] == f"assistant:{found}"
        params = {"assistant_id": name, "checkpoint_id": identity(thread.state())}
        assert thread.ask("GET", thread.path("/messages"), 404, params=params) == {"detail": "Checkpoint not found"}
    assert origins(thread, assistant_id="echo")["assistant_id"] == own
    thread.ask("GET", thread.path("/messages"), 404, params={"assistant_id": "nobody"})


def test_a_straight_conversation(thread):
    for text in ("one", "two", "three"):
        thread.say("echo", text)
    answer = origins(thread)
    assert answer["checkpoint_id"] == identity(thread.state())
    assert [each["type"] for each in answer["messages"]] == ["human", "ai"] * 3
    assert {count(each) for each in answer["messages"][::2]} == {(1, 1)}
    runs = [run["run_id"] for run in reversed(thread.ask("GET", thread.path("/runs")))]
    assert [each["run_id"] for each in answer["messages"]] == [run for run in runs for _ in range(2)]
    earlier = identity(thread.history()[4])
    assert origins(thread, checkpoint_id=earlier)["messages"] == [
        {**each, "alternatives": mine["alternatives"]}
        for each, mine in zip(answer["messages"][:3], origins(thread, checkpoint_id=earlier)["messages"], strict=True)
    ]


def test_tool_calls_are_messages(thread):
    thread.say("tools", "sky")
    assert [each["type"] for each in origins(thread)["messages"]] == ["human", "ai", "tool", "ai"]


def test_a_state_without_messages(thread):
    thread.run("loop", input={"count": 0})
    assert origins(thread)["messages"] == []


# ---- retries and edits


def test_the_first_message_is_retried_repeatedly(thread):
    thread.say("echo", "one")
    for number in range(2, 6):
        again(thread, said(thread, 0), f"one {number}")
        assert texts(thread.state()["values"]) == [f"one {number}", f"You said: one {number}"]
        assert count(said(thread, 0)) == (number, number)
    assert choices(thread, said(thread, 0)) == [["one"], ["one 2"], ["one 3"], ["one 4"], ["one 5"]]


def test_a_later_message_is_retried_repeatedly(thread):
    thread.say("echo", "one")
    thread.say("echo", "two")
    for number in range(2, 6):
        again(thread, said(thread), f"two {number}")
        assert count(said(thread)) == (number, number)
    assert count(said(thread, 0)) == (1, 1)
    assert choices(thread, said(thread)) == [["one", "two"], *[["one", f"two {number}"] for number in range(2, 6)]]


def test_a_fork_of_the_official_hook_is_the_same_turn(thread):
    """It forks from the parent of the first state with the message, which is the input, not the
    state before it."""
    thread.say("echo", "one")
    thread.say("echo", "two")
    for number in range(2, 5):
        own = said(thread)["id"]
        thread.say("echo", f"two {number}", str(uuid.uuid4()), checkpoint_id=thread.before(own))
        assert count(said(thread)) == (number, number)
    again(thread, said(thread), "two 5")  # and from the other fork, in the same turn
    assert count(said(thread)) == (5, 5)
    assert choices(thread, said(thread)) == [["one", "two"], *[["one", f"two {number}"] for number in range(2, 6)]]
    own = said(thread, 0)["id"]
    thread.say("echo", "uno", str(uuid.uuid4()), checkpoint_id=thread.before(own))
    assert count(said(thread, 0)) == (2, 2)


def test_switching_requests_another_head(thread):
    thread.say("echo", "one")
    thread.say("echo", "two")
    again(thread, said(thread), "deux")
    again(thread, said(thread, 0), "uno")
    first = said(thread, 0)
    old, new = first["alternatives"]
    assert [old["current"], new["current"]] == [False, True] and count(first) == (2, 2)
    assert texts_at(thread, old["head_checkpoint_id"])[::2] == ["one", "deux"]  # its newest leaf
    there = origins(thread, checkpoint_id=old["head_checkpoint_id"])
    assert [count(each) for each in there["messages"][::2]] == [(1, 2), (2, 2)]
    deeper = there["messages"][2]["alternatives"][0]
    assert texts_at(thread, deeper["head_checkpoint_id"])[::2] == ["one", "two"]
    assert count(said(thread, checkpoint_id=deeper["head_checkpoint_id"])) == (1, 2)
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": deeper["head_checkpoint_id"]})
    assert origins(thread)["checkpoint_id"] == deeper["head_checkpoint_id"]  # the current head


def test_nested_forks(thread):
    for text in ("one", "two", "three"):
        thread.say("echo", text)
    again(thread, said(thread, 1), "deux")
    thread.say("echo", "trois")
    again(thread, said(thread, 2), "drei")
    again(thread, said(thread, 2), "tre")
    again(thread, said(thread, 0), "uno")
    thread.say("echo", "due")
    again(thread, said(thread, 1), "zwei")
    assert [count(said(thread, number)) for number in (0, 1)] == [(2, 2), (2, 2)]
    old = said(thread, 0)["alternatives"][0]["head_checkpoint_id"]
    there = origins(thread, checkpoint_id=old)["messages"][::2]
    assert [count(each) for each in there] == [(1, 2), (2, 2), (3, 3)]
    assert choices(thread, there[1]) == [["one", "two", "three"], ["one", "deux", "tre"]]
    assert choices(thread, there[2]) == [["one", "deux", name] for name in ("trois", "drei", "tre")]


def test_a_retry_of_the_answer_is_the_same_turn(thread):
    thread.say("echo", "one")
    answer = thread.state()["values"]["messages"][-1]["id"]
    thread.run("echo", input=None, checkpoint_id=thread.before(answer))
    assert count(said(thread)) == (1, 1)
    assert said(thread)["alternatives"][0]["head_checkpoint_id"] == identity(thread.state())


def test_several_messages_at_once_are_one_turn(thread):
    thread.say("echo", "one")
    pair = [{"role": "user", "content": text, "id": str(uuid.uuid4())} for text in ("two", "and three")]
    thread.run("echo", input={"messages": pair})
    second, third = (said(thread, number) for number in (1, 2))
    assert (
        second["fork_checkpoint_id"] == third["fork_checkpoint_id"] and second["alternatives"] == third["alternatives"]
    )
    again(thread, third, "two alone")
    assert texts(thread.state()["values"])[::2] == ["one", "two alone"] and count(said(thread)) == (2, 2)


def test_a_turn_that_did_not_begin_is_not_an_alternative(thread):
    """A run that ends before its first step leaves an input without children."""
    thread.say("echo", "one")
    head = identity(thread.state())
    for point in (said(thread, 0)["fork_checkpoint_id"], head):
        body = {"values": human("nothing"), "as_node": "__input__", "checkpoint_id": point}
        thread.ask("POST", thread.path("/state"), json=body)
        assert source(Tree(thread).states, identity(thread.state())) == "input"
        assert count(said(thread, 0, checkpoint_id=head)) == (1, 1)
    again(thread, said(thread, 0, checkpoint_id=head), "uno")
    assert count(said(thread, 0)) == (2, 2) and texts(thread.state()["values"])[0] == "uno"


def first_leaf(thread):
    return min(leaf["head_checkpoint_id"] for leaf in thread.branches()["branches"] if leaf["leaf"])


def test_questions_do_not_end_a_turn(thread):
    thread.say("approval", "one")
    assert count(said(thread)) == (1, 1)
    thread.run("approval", command={"resume": "yes"})
    assert count(said(thread)) == (1, 1)
    again(thread, said(thread), "uno", "approval")
    assert count(said(thread)) == (2, 2)
    assert thread.record()["status"] == "interrupted"


# ---- storage


def test_long_and_short_ones(thread):
    """The same content twice, each time in several pieces; short ones share a piece."""
    thread.say("echo", "one")
    for text in ("two", "x" * 1_300_000, "x" * 1_300_000):
        write(thread, text)
    thread.say("echo", "three")
    assert len(origins(thread)["messages"]) == 7


def test_a_conversation_that_loses_its_beginning(thread):
    for number in range(9):
        thread.say("echo", "a word " * (40 * (number % 3)) + str(number))
        old = [message["id"] for message in thread.state()["values"]["messages"][:-4]]
        gone = {"messages": [{"type": "remove", "id": own, "content": ""} for own in old]}
        body = {"values": gone, "as_node": "reply", "assistant_id": "echo"}
        thread.ask("POST", thread.path("/state"), json=body)
        assert [each["type"] for each in origins(thread)["messages"]] == (["human", "ai"] * 2)[-2 * (number + 1) :]


def test_a_message_that_is_changed_stays_where_it_came(thread):
    thread.say("echo", "one", "a")
    first = said(thread)
    thread.say("echo", "two", "b")
    other = {"messages": [{"type": "human", "id": "a", "content": "other " * 100}]}
    thread.ask("POST", thread.path("/state"), json={"values": other, "as_node": "reply", "assistant_id": "echo"})
    assert said(thread, 0)["checkpoint_id"] == first["checkpoint_id"]


def test_messages_of_a_command_wait_at_the_question(thread):
    thread.say("approval", "one")
    asked = identity(thread.state())
    update = {"messages": [{"type": "ai", "id": "by-command", "content": "by a command"}]}
    thread.run("approval", command={"resume": "yes", "update": update})
    [own] = [each for each in origins(thread)["messages"] if each["id"] == "by-command"]
    assert own["checkpoint_id"] == asked


# ---- repeated requests, with cached results


def heads(thread):
    return [leaf["head_checkpoint_id"] for leaf in thread.branches()["branches"] if leaf["leaf"]]


def test_an_id_in_two_branches(thread):
    thread.say("echo", "one", "a")
    thread.say("echo", "two", "b")
    fork = said(thread)["fork_checkpoint_id"]
    thread.say("echo", "deux", "b", checkpoint_id=fork)
    thread.say("echo", "trois", "c")
    for _ in range(2):
        firsts = {said(thread, 1, checkpoint_id=head)["checkpoint_id"] for head in heads(thread)}
        assert len(firsts) == 2


def test_a_message_that_was_removed_and_came_back(thread):
    for own in "ab":
        thread.say("echo", own, own)
    origins(thread)
    fork = said(thread, 1)["fork_checkpoint_id"]
    gone = {"messages": [{"type": "remove", "id": "a", "content": ""}]}
    thread.ask("POST", thread.path("/state"), json={"values": gone, "as_node": "__start__", "assistant_id": "echo"})
    assert [each["id"] for each in origins(thread)["messages"] if each["type"] == "human"] == ["b"]
    thread.say("echo", "other", "c", checkpoint_id=fork)
    assert [each["id"] for each in origins(thread)["messages"][::2]] == ["a", "c"]


def test_cached_and_computed_origins_are_equal(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        for text in ("one", "two", "three"):
            thread.say("echo", text)
            origins(thread)
        again(thread, said(thread, 1), "deux")
        thread.say("echo", "trois")
        again(thread, said(thread, 2), "drei")
        again(thread, said(thread, 0), "uno")
        before = {head: origins(thread, checkpoint_id=head) for head in heads(thread)}
        assert len(before) == 4
        # A deleted branch is not cached any more.
        [first, *others] = sorted(before)
        [own] = [each["branch_id"] for each in thread.branches()["branches"] if each["head_checkpoint_id"] == first]
        thread.ask("DELETE", thread.path(f"/branches/{own}"), 204)
        before = {head: origins(thread, checkpoint_id=head) for head in heads(thread)}
        assert sorted(before) == others
    own_server.stop()
    own_server.restart()
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread.http = http
        assert {head: origins(thread, checkpoint_id=head) for head in heads(thread)} == before


# ---- messages that are not from a run's input


def write(thread, text, **body):
    message = {"type": "human", "content": text, "id": str(uuid.uuid4())}
    body = {"values": {"messages": [message]}, "as_node": "__start__", "assistant_id": "echo", **body}
    return thread.ask("POST", thread.path("/state"), json=body)["checkpoint"]["checkpoint_id"]


def test_a_message_from_a_state_update(thread):
    thread.say("echo", "one")
    before = identity(thread.state())
    made = write(thread, "by hand")
    thread.run("echo", input=None)
    own = said(thread)
    assert own["checkpoint_id"] == made and own["fork_checkpoint_id"] == before and own["run_id"] is None
    assert count(own) == (1, 1) and own["alternatives"][0]["branch_id"] == made
    again(thread, own, "by a run")
    assert count(said(thread)) == (2, 2)
    assert choices(thread, said(thread)) == [["one", "by hand"], ["one", "by a run"]]
    other = write(thread, "by hand again", checkpoint_id=before)
    assert count(said(thread, checkpoint_id=other)) == (3, 3)


def test_a_first_message_from_a_state_update(thread):
    made = write(thread, "by hand")
    own = said(thread)
    assert own["fork_checkpoint_id"] is None and count(own) == (1, 1)
    assert own["alternatives"][0]["branch_id"] == own["alternatives"][0]["head_checkpoint_id"] == made


def test_an_answer_from_a_state_update_is_not_an_alternative(thread):
    thread.say("echo", "one")
    thread.say("echo", "two")
    fork = said(thread)["fork_checkpoint_id"]
    update = {"messages": [{"type": "ai", "content": "by hand", "id": "h"}]}
    thread.ask("POST", thread.path("/state"), json={"values": update, "checkpoint_id": fork, "as_node": "reply"})
    again(thread, said(thread, checkpoint_id=first_leaf(thread)), "deux")
    assert count(said(thread)) == (2, 2)


def test_pruned_threads(thread):
    for text in ("one", "two", "three"):
        thread.say("echo", text)
    again(thread, said(thread, 1), "deux")
    body = {"thread_ids": [thread.id], "strategy": "keep_branches", "keep_last": 1}
    thread.ask("POST", "/threads/prune", json=body)
    answer = thread.ask("GET", thread.path("/messages"))
    humans = [each for each in answer["messages"] if each["type"] == "human"]
    assert len(humans) == 2 and humans[0]["fork_checkpoint_id"] is None
    fork = humans[1]["fork_checkpoint_id"]
    assert texts_at(thread, fork)[::2] == ["one"] and count(humans[1]) == (2, 2)
    again(thread, humans[1], "zwei")
    assert texts(thread.state()["values"])[::2] == ["one", "zwei"]
    [_, last] = [each for each in thread.ask("GET", thread.path("/messages"))["messages"] if each["type"] == "human"]
    assert count(last) == (3, 3)
    body["strategy"] = "keep_latest"
    thread.ask("POST", "/threads/prune", json=body)
    answer = thread.ask("GET", thread.path("/messages"))
    assert len(answer["messages"]) == 4
    assert {each["checkpoint_id"] for each in answer["messages"]} == {answer["checkpoint_id"]}


# ---- agents, namespaces, errors


def test_agents_have_turns_of_their_own(thread, http):
    thread.say("echo", "one")
    thread.say("my-assistant", "Hello")
    again(thread, said(thread, assistant_id="echo"), "uno")
    again(thread, said(thread, assistant_id="my-assistant"), "Hello", "my-assistant")
    again(thread, said(thread, assistant_id="my-assistant"), "Hello", "my-assistant")
    assert count(said(thread, assistant_id="echo")) == (2, 2)
    assert count(said(thread, assistant_id="my-assistant")) == (3, 3)
    own = http.get("/assistants/echo").json()["assistant_id"]
    assert origins(thread, checkpoint_ns=f"assistant:{own}") == origins(thread, assistant_id="echo")


def test_a_namespace_of_its_own(thread):
    body = {"config": {"configurable": {"checkpoint_ns": "mine"}}}
    thread.say("echo", "one", **body)
    thread.say("echo", "uno", checkpoint_id=said(thread, checkpoint_ns="mine")["fork_checkpoint_id"], **body)
    answer = origins(thread, checkpoint_ns="mine")
    assert answer["assistant_id"] is None and count(answer["messages"][0]) == (2, 2)


def test_during_an_active_run(thread):
    thread.say("echo", "one")
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    assert count(said(thread, assistant_id="echo")) == (1, 1)
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel?wait=1"))


def test_long_threads(thread):
    """More than the hundred states that the official hook reads."""
    for number in range(60):
        thread.say("echo", f"n{number}")
    again(thread, said(thread, 30), "elsewhere")
    answer = origins(thread)
    assert len(answer["messages"]) == 62 and count(answer["messages"][60]) == (2, 2)
    old = answer["messages"][60]["alternatives"][0]["head_checkpoint_id"]
    assert len(thread.ask("GET", thread.path("/messages"), params={"checkpoint_id": old})["messages"]) == 120


def test_unknown_threads_and_checkpoints(thread):
    thread.say("echo", "one")
    for other in (UNKNOWN, "x", "x" * 5000):
        params = {"checkpoint_id": other}
        assert thread.ask("GET", thread.path("/messages"), 404, params=params) == {"detail": "Checkpoint not found"}
    thread.ask("GET", thread.path("/messages"), 422, params={"checkpoint_ns": "x" * 5000})
    unknown = uuid.uuid4()
    assert thread.ask("GET", f"/threads/{unknown}/messages", 404) == {"detail": f"Thread with ID {unknown} not found"}
    thread.ask("GET", "/threads/not-a-uuid/messages", 422)
    empty = Thread(thread.http)
    empty.ask("GET", empty.path("/messages"), 404, params={"checkpoint_id": UNKNOWN})


# ---- damaged trees


def damage(server, thread, parents):
    """Exports the thread, changes parents of checkpoints, and imports it again."""
    file = server.folder / "thread.jsonl"
    tool = [str(binary()), "export", thread.id, "--store", f"sqlite:{server.folder}/heddle.db", "--output", str(file)]
    subprocess.run(tool, check=True, timeout=120, capture_output=True)
    lines = file.read_text().split("\n")
    for i, line in enumerate(lines):
        row = json.loads(line).get("row", {}) if '"checkpoints"' in line else {}
        if row.get("checkpoint_id") in parents and "parent_checkpoint_id" in row:
            # All other bytes stay the same: stored values have checksums.
            wanted = parents.pop(row["checkpoint_id"])
            lines[i] = re.sub(r'("parent_checkpoint_id": ?)(null|"[^"]*")', rf'\g<1>"{wanted}"', line, count=1)
            assert json.loads(lines[i])["row"]["parent_checkpoint_id"] == wanted
    assert not parents
    file.write_text("\n".join(lines))
    tool[1:3] = ["import", str(file)]
    done = subprocess.run([*tool[:5], "--if-exists", "replace"], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["circle", "itself", "missing"])
def test_damaged_trees(own_server, kind):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        thread.say("echo", "one")
        again(thread, said(thread), "uno")
        thread.say("echo", "two")
        again(thread, said(thread), "due")
        tree = Tree(thread)
        way = tree.way(identity(thread.state()))
    own_server.stop()
    damage(own_server, thread, {way[0]: way[1] if kind == "circle" else way[0] if kind == "itself" else UNKNOWN})
    own_server.start()
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread.http = http
        answer = thread.ask("GET", thread.path("/messages"))
        assert [each["type"] for each in answer["messages"]] == ["human", "ai"] * 2
        assert count(answer["messages"][2]) == (2, 2)
        assert {head["head_checkpoint_id"] for head in answer["messages"][2]["alternatives"]} <= set(tree.states)
        if kind == "missing":
            assert count(answer["messages"][0]) == (2, 2)
            assert answer["messages"][0]["fork_checkpoint_id"] == way[0]
