"""Two agents and two people in one thread, through two servers."""

import pytest
from bosses import call, contents, make
from load import eventually
from plain import human, texts
from readers import Reader
from talk import Talk


def agent(server, graph: str) -> str:
    return server.ask("POST", "/assistants", json={"graph_id": graph})["assistant_id"]


@pytest.fixture
def three(shared):
    return shared.members


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


def questions(talk, through) -> dict[str, str]:
    """The open questions of a thread: the question to its id."""
    record = talk.record(through)
    found = [each for task in record["interrupts"].values() for each in task]
    return {each["value"] if isinstance(each["value"], str) else "approve?": each["id"] for each in found}


def test_questions_and_answers_of_two_people_interleave(talk, three):
    a, b, c = three
    asker, approver = agent(a, "questions"), agent(b, "approval")
    talk.wait(a, asker, input={"log": []})
    talk.wait(b, approver, input=human("May I?"))
    assert sorted(questions(talk, c)) == ["approve?", "name?"]
    assert talk.record(a)["status"] == "interrupted"
    # Each answers his own agent's first question, through the other's server.
    talk.wait(b, asker, command={"resume": "Ann"})
    assert "approve?" in questions(talk, a)
    assert talk.wait(a, approver, command={"resume": "yes"})["verdict"] == "yes"
    [left] = questions(talk, c).values()
    assert left and talk.record(b)["status"] == "interrupted"
    assert talk.wait(c, asker, command={"resume": 7})["log"] == ["Ann is 7"]
    for each in three:
        record = talk.record(each)
        assert (record["status"], record["interrupts"]) == ("idle", {})


def test_two_people_answer_at_the_same_time(talk, three):
    a, b, c = three
    agents = [agent(each, "approval") for each in (a, b)]
    for turn in range(5):
        for each, one in zip((a, b), agents):
            talk.wait(each, one, input=human(f"turn {turn}"))
        readers = [
            Reader(
                each.url, talk.path("/runs/stream"), "POST",
                json={"assistant_id": one, "command": {"resume": f"{each.name}{turn}"}, "stream_mode": "values"},
            )
            for each, one in zip((b, a), agents)
        ]  # fmt: skip
        for reader, name in zip(readers, "ba"):
            journal = reader.join()
            assert journal.frames[-2][1]["verdict"] == f"{name}{turn}"
    assert talk.record(c)["status"] == "idle"


def test_a_cancel_of_one_agent_leaves_the_other_alone(talk, three, gate):
    a, b, c = three
    agents = [agent(each, "gated") for each in (a, b)]
    runs = [talk.start(each, one, input={}, config=gate.config) for each, one in zip((a, b), agents)]
    eventually(lambda: gate.arrived == 2)
    talk.ask(c, "POST", f"/runs/{runs[0]}/cancel", params={"wait": "1"})
    assert [talk.run(c, run)["status"] for run in runs] == ["interrupted", "running"]
    gate.open()
    assert talk.join(a, runs[1])["log"] == ["before", "through", "after"]
    assert gate.arrived == 2


def test_both_people_see_the_events_of_both_agents(talk, three):
    a, b, c = three
    readers = [Reader(each.url, talk.path("/stream")) for each in three]
    runs = [talk.start(each, agent(each, "slow"), input=human(each.name), stream_mode="updates") for each in (a, b)]
    for run in runs:
        talk.join(c, run)
    for reader in readers:
        eventually(lambda: reader.journal.names().count("end") == 2)
    seen = [[frame for frame in reader.journal.frames if frame[0] != "metadata"] for reader in readers]
    assert seen[0] == seen[1] == seen[2] and len(seen[0]) >= 4


def test_delegates_that_would_wait_for_each_other_fail_at_once(talk, three, gate):
    a, b, c = three
    anna = make(
        a, "member", "anna", gate=gate.config["configurable"]["gate"], calls=[call("bert")], assistants=["bert"]
    )
    bert = make(
        b, "member", "bert", gate=gate.config["configurable"]["gate"], calls=[call("anna")], assistants=["anna"]
    )
    runs = [talk.start(each, one, input={"messages": "go"}) for each, one in ((a, anna), (b, bert))]
    eventually(lambda: gate.arrived == 2)
    gate.open()
    values = [talk.join(c, run) for run in runs]
    refused = [each for value in values for each in value["messages"] if each.get("status") == "error"]
    assert refused and all("waits for this call" in each["content"] for each in refused)
    assert all(contents(value)[-1].startswith("heard: ") for value in values)
    assert talk.record(b)["status"] == "idle"


def test_a_delegate_of_another_server_is_the_same_agent(talk, three):
    a, b, c = three
    anna = make(a, "echo", "anna of the cluster")
    boss = make(b, "boss", "boss of the cluster", calls=[call("anna of the cluster")], assistants=[anna])
    talk.wait(c, anna, input=human("first"))
    try:
        values = talk.wait(b, boss, input=human("go"))
    except AssertionError:
        raise
    assert contents(values)[-1].startswith("heard: ")
    assert texts(talk.state(a, assistant_id=anna)["values"])[:2] == ["first", "You said: first"]
