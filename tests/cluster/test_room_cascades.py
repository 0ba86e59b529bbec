"""Edits of chat messages through every server; cascades continue when their server is killed."""

import pytest
from load import eventually
from talk import Talk

SECONDS = 60  # the lease, the search for cascades, and the runs, on a busy machine


def post(talk, through, text, **more) -> str:
    """Posts a message and waits for its runs; returns its id."""
    result = talk.ask(through, "POST", "/room/messages", 201, json={"content": text, **more})
    for run in result["runs"]:
        talk.join(through, run["run_id"])
    return result["message"]["id"]


def edit(talk, through, message, text, status=200) -> dict:
    return talk.ask(through, "PATCH", f"/room/messages/{message}", status, json={"content": text})["cascade"]


def status_of(talk, through, cascade) -> str:
    return talk.ask(through, "GET", f"/cascades/{cascade['cascade_id']}")["status"]


def heard(talk, through, agent) -> list[str]:
    return [message["content"] for message in talk.state(through, assistant_id=agent)["values"]["messages"]]


def test_messages_are_edited_through_every_server(shared, agent_of):
    a, b, c = shared.members
    talk, keeper = Talk(shared, a), agent_of(a, "Parrot", "echo")
    first = post(talk, a, "@Parrot red")
    post(talk, b, "@Parrot and now?")
    for number, each in enumerate((a, b, c, a)):
        cascade = edit(talk, each, first, f"@Parrot colour {number}")
        eventually(lambda cascade=cascade, each=each: status_of(talk, each, cascade) == "done", SECONDS)
        assert heard(talk, c, keeper)[0] == f"@Parrot colour {number}"
    talk.is_free()


def test_a_cascade_continues_when_its_server_is_killed(cluster, agent_of, gate):
    servers = cluster()
    a, b, c = servers.members
    gate.open()
    keeper = agent_of(a, "Keeper", "gated", config=gate.config)
    talk = Talk(servers, a)
    first = post(talk, a, "@Keeper red")
    post(talk, a, "@Keeper and now?")
    gate.is_open.clear()
    arrived = gate.arrived
    cascade = edit(talk, b, first, "@Keeper blue")
    eventually(lambda: gate.arrived == arrived + 1)
    assert heard(talk, c, keeper)[0] == "@Keeper red"
    holder = talk.is_held()
    alive = next(each for each in servers.members if each is not holder)
    holder.kill()
    eventually(lambda: gate.arrived == arrived + 2, SECONDS)
    gate.open()
    eventually(lambda: status_of(talk, alive, cascade) == "done", SECONDS)
    assert heard(talk, alive, keeper)[0] == "@Keeper blue"
    assert len(heard(talk, alive, keeper)) == 4


@pytest.fixture
def agent_of():
    """Creates an assistant through a server."""

    def make(through, name, graph, **body) -> str:
        return through.ask("POST", "/assistants", json={"graph_id": graph, "name": name, **body})["assistant_id"]

    return make
