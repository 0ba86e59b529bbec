"""Chat messages are changed through every server, whichever holds the thread."""

import itertools

import pytest
from load import eventually
from talk import Talk

ORDERS = list(itertools.permutations(range(3)))


@pytest.fixture(params=ORDERS[::3], ids=lambda order: "".join("abc"[number] for number in order))
def three(request, shared):
    """The servers in two orders: the first one creates the run that holds the thread."""
    return [shared.members[number] for number in request.param]


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


def change_all(talk, three, first):
    """Deletes, rates and reads through each server; `first` is the number of the first message."""
    for each in three:
        made = talk.ask(each, "POST", "/room/messages", 201, json={"content": "hello", "mentions": ["echo"]})
        talk.join(each, made["runs"][0]["run_id"])
    found = talk.ask(three[0], "GET", "/room/messages", params={"after": first - 1})
    asked, answers = found[::2], found[1::2]
    for each, message, answer in zip(three[1:] + three[:1], asked, answers, strict=True):
        gone = talk.ask(each, "DELETE", f"/room/messages/{message['id']}")["message"]
        rated = talk.ask(each, "POST", f"/room/messages/{answer['id']}/feedback", json={"rating": "up"})["message"]
        assert gone["state"] == "deleted" and rated["feedback"][0]["rating"] == "up"
        talk.ask(each, "POST", "/room/typing", 204)
        assert talk.ask(each, "PUT", "/room/read", json={"seq": answer["seq"]})["seq"] == answer["seq"]
    return [talk.ask(each, "GET", "/room/messages") for each in three]


def test_changes_while_another_server_holds_the_thread(talk, three, gate):
    a, b, c = three
    before = gate.arrived
    run = talk.start(a, "gated", input={"messages": []}, config=gate.config)
    eventually(lambda: gate.arrived > before)
    assert talk.holder() == a
    lists = change_all(talk, three, 1)
    assert lists[0] == lists[1] == lists[2] and [each["seq"] for each in lists[0]] == list(range(1, 7))
    assert talk.holder() == a
    stopped = talk.ask(c, "POST", "/room/stop")["cancelled"]
    assert [(each["run_id"], each["status"]) for each in stopped] == [(run, "interrupted")]
    eventually(lambda: talk.holder() is None)
    talk.ask(b, "DELETE", f"/room/messages/{lists[0][0]['id']}", params={"purge": "true"})


def test_changes_of_an_unheld_thread(talk, three):
    lists = change_all(talk, three, 1)
    assert lists[0] == lists[1] == lists[2]
    purged = talk.ask(three[2], "DELETE", f"/room/messages/{lists[0][0]['id']}", params={"purge": "true"})
    assert purged["remains"] == [] and talk.ask(three[1], "GET", "/runs") == []
    talk.is_free()
