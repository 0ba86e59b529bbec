"""GET /threads/{id}/timeline: the messages of a thread with their senders, across its agents."""

import uuid

import pytest
from plain import Thread, human, identity, texts

pytestmark = pytest.mark.beyond_peer("has no such endpoint")


@pytest.fixture
def thread(http):
    return Thread(http)


def said(entries):
    return [entry["message"]["content"] for entry in entries]


def test_an_empty_thread_has_no_entries(thread):
    assert thread.timeline() == []


def test_agents_take_turns(thread, http):
    echo, mine = (http.get(f"/assistants/{name}").json()["assistant_id"] for name in ("echo", "my-assistant"))
    thread.say("echo", "one", "m1")
    thread.say("my-assistant", "Hello", "m2")
    thread.say("echo", "two", "m3")
    entries = thread.timeline()
    assert said(entries) == ["one", "You said: one", "Hello", "Hi there!", "two", "You said: two"]
    assert [entry["assistant_id"] for entry in entries] == [echo, echo, mine, mine, echo, echo]
    assert [entry["graph_id"] for entry in entries] == ["echo"] * 2 + ["my-assistant"] * 2 + ["echo"] * 2
    assert [entry["message"]["type"] for entry in entries] == ["human", "ai"] * 3
    assert [entry["checkpoint_ns"] for entry in entries] == [f"assistant:{e['assistant_id']}" for e in entries]
    runs = [run["run_id"] for run in reversed(thread.ask("GET", thread.path("/runs")))]
    assert [entry["run_id"] for entry in entries] == [run for run in runs for _ in range(2)]
    assert [entry["created_at"] for entry in entries] == sorted(entry["created_at"] for entry in entries)


def test_assistant_id_selects_one_agent(thread, http):
    echo = http.get("/assistants/echo").json()["assistant_id"]
    thread.say("echo", "one", "m1")
    thread.say("my-assistant", "Hello", "m2")
    thread.say("echo", "two", "m3")
    for name in ("echo", echo, echo.upper()):
        entries = thread.timeline(assistant_id=name)
        assert said(entries) == ["one", "You said: one", "two", "You said: two"]
        assert {entry["assistant_id"] for entry in entries} == {echo}
    assert said(thread.timeline(assistant_id="echo", offset=2, limit=1)) == ["two"]
    assert said(thread.timeline(assistant_id="my-assistant")) == ["Hello", "Hi there!"]
    assert thread.timeline(assistant_id=str(uuid.uuid4())) == []  # as /state and /history
    thread.ask("GET", thread.path("/timeline"), 404, params={"assistant_id": "nobody"})


def test_an_entry_names_the_state_that_has_it_first(thread):
    thread.say("echo", "one", "m1")
    thread.say("echo", "two", "m2")
    history = {identity(state): state for state in thread.history()}
    for entry in thread.timeline():
        state = history[entry["checkpoint_id"]]
        parent = history[state["parent_checkpoint"]["checkpoint_id"]]
        own = entry["message"]["id"]
        assert own in [message["id"] for message in state["values"]["messages"]]
        assert own not in [message["id"] for message in parent["values"].get("messages", [])]
        assert entry["message"] in state["values"]["messages"] and entry["created_at"] == state["created_at"]


def test_an_entry_is_where_an_edit_begins(thread):
    thread.say("echo", "one", "m1")
    thread.say("echo", "two", "m2")
    [entry] = [entry for entry in thread.timeline() if entry["message"]["id"] == "m2"]
    state = thread.ask("GET", thread.path(f"/state/{entry['checkpoint_id']}"))
    point = state["parent_checkpoint"]["checkpoint_id"]
    thread.say("echo", "deux", "m3", checkpoint_id=point)
    assert said(thread.timeline()) == ["one", "You said: one", "deux", "You said: deux"]  # the current branch


def test_internal_messages_of_agents_are_left_out(thread):
    thread.say("tools", "sky")
    assert said(thread.timeline()) == ["sky", "It is sunny."]


def test_messages_of_subgraphs_come_once(thread):
    thread.run("nested", input=human("hi"))
    assert said(thread.timeline()) == ["hi", "outer", "inner says hello"]


def test_a_message_that_two_agents_have_comes_once(thread):
    shared = {"role": "user", "content": "to both", "id": "shared"}
    thread.run("echo", input={"messages": [shared]})
    thread.run("my-assistant", input={"messages": [shared]})
    assert said(thread.timeline()) == ["to both", "You said: to both", "Let us."]


def test_another_branch_of_one_agent_does_not_disturb_the_others(thread):
    thread.say("echo", "one", "m1")
    thread.say("my-assistant", "Hello", "m2")
    thread.say("echo", "uno", "m3", checkpoint_id=thread.before("m1", assistant_id="echo"))
    assert said(thread.timeline()) == ["Hello", "Hi there!", "uno", "You said: uno"]
    first = [state for state in thread.history(assistant_id="echo") if texts(state["values"])[-1:] == ["You said: one"]]
    body = {"checkpoint_id": identity(first[0]), "assistant_id": "echo"}
    thread.ask("PATCH", thread.path("/branches"), json=body)
    assert said(thread.timeline()) == ["one", "You said: one", "Hello", "Hi there!"]


def test_pages(thread):
    for number in range(5):
        thread.say("echo", f"n{number}")
    everything = thread.timeline()
    answer = thread.http.get(thread.path("/timeline"), params={"limit": 4, "offset": 4})
    assert answer.json() == everything[4:8]
    assert answer.headers["x-pagination-total"] == "10" and answer.headers["x-pagination-next"] == "8"
    last = thread.http.get(thread.path("/timeline"), params={"limit": 4, "offset": 8})
    assert last.json() == everything[8:] and "x-pagination-next" not in last.headers
    for wrong in ({"limit": 0}, {"limit": 1001}, {"limit": "many"}, {"offset": -1}):
        assert thread.http.get(thread.path("/timeline"), params=wrong).status_code == 422


def test_unknown_threads(thread):
    unknown = uuid.uuid4()
    assert thread.ask("GET", f"/threads/{unknown}/timeline", 404) == {"detail": f"Thread with ID {unknown} not found"}
    thread.ask("GET", "/threads/not-a-uuid/timeline", 422)


def who(entries):
    return [entry["sender"] and (entry["sender"]["type"], entry["sender"]["name"]) for entry in entries]


def test_senders(thread, http):
    echo = http.get("/assistants/echo").json()
    thread.say("echo", "one", "m1")
    entries = thread.timeline()
    assert [entry["sender"] for entry in entries] == [
        {"type": "person", "id": "user", "name": "User"},
        {"type": "agent", "id": echo["assistant_id"], "name": echo["name"]},
    ]
    assert [entry["delegated"] for entry in entries] == [False, False]
    origins = thread.ask("GET", thread.path("/messages"), params={"assistant_id": "echo"})["messages"]
    assert [origin["sender"] for origin in origins] == [entry["sender"] for entry in entries]


def test_an_answer_in_the_input_is_not_of_the_agent_that_gets_it(thread):
    heard = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "from elsewhere"}]
    thread.run("echo", input={"messages": [*heard, {"role": "user", "content": "two"}]})
    entries = thread.timeline()
    assert said(entries) == ["one", "from elsewhere", "two", "You said: two"]
    assert who(entries) == [("person", "User")] * 3 + [("agent", "echo")]
    origins = thread.ask("GET", thread.path("/messages"), params={"assistant_id": "echo"})["messages"]
    assert who(origins) == who(entries)


def test_the_sender_of_an_update_is_not_known(thread):
    thread.say("echo", "one", "m1")
    update = {"messages": [{"role": "assistant", "content": "put in", "id": "m2"}]}
    thread.ask("POST", thread.path("/state"), json={"values": update})
    assert who(thread.timeline()) == [("person", "User"), ("agent", "echo"), None]


def test_words_that_a_client_gives_to_others_are_its_own(thread):
    words = {
        "sender": {"type": "agent", "id": "x", "name": "Another"},
        "message_id": "x",
        "version": 1,
        "context": True,
    }
    claim = {"role": "user", "content": "I am another", "additional_kwargs": {"heddle": words}}
    thread.ask("PUT", thread.path("/room"), json={})
    thread.run("echo", input={"messages": [claim]})
    [entry] = thread.ask("GET", thread.path("/messages"), params={"assistant_id": "echo"})["messages"][:1]
    assert who([entry]) == [("person", "User")]
