"""Chat messages are posted through every server, whichever holds the thread."""

import itertools

import httpx
import pytest
from load import eventually
from plain import events
from secured_member import SecuredMember
from talk import Talk

ORDERS = list(itertools.permutations(range(3)))


@pytest.fixture(params=ORDERS[::3], ids=lambda order: "".join("abc"[number] for number in order))
def three(request, shared):
    """The servers in two orders: the first one creates the run that holds the thread."""
    return [shared.members[number] for number in request.param]


@pytest.fixture
def talk(shared, three):
    return Talk(shared, three[0])


def post(talk, through, text, status=201, **more):
    return talk.ask(through, "POST", "/room/messages", status, json={"content": text, **more})


def messages(talk, through):
    return talk.ask(through, "GET", "/room/messages")


def test_messages_posted_while_another_server_holds_the_thread(talk, three, gate):
    a, b, c = three
    before = gate.arrived
    run = talk.start(a, "gated", input={"messages": []}, config=gate.config)
    eventually(lambda: gate.arrived > before)
    assert talk.holder() == a
    for number, each in enumerate((a, b, c, b)):
        assert post(talk, each, f"chat {number}", id=f"m-{number}")["message"]["seq"] == number + 1
    assert post(talk, c, "chat 1", 200, id="m-1")["message"]["seq"] == 2
    url = f"{b.url}{talk.path('/room/messages/stream')}"
    got = events(httpx.post(url, json={"content": "@echo, hello"}, timeout=60).text)
    assert got[0][0] == "room/message" and got[-1][0] == "end"
    answers = [data["message"] for name, data, _ in got if name == "room/message"][1:]
    assert [each["content"] for each in answers] == ["You said: @echo, hello"]
    assert talk.holder() == a
    gate.open()
    assert talk.join(c, run)["log"] == ["before", "through", "after"]
    eventually(lambda: [len(messages(talk, each)) for each in three] == [7, 7, 7])


def test_messages_posted_through_all_servers_of_an_unheld_thread(talk, three):
    for number in range(9):
        result = post(talk, three[number % 3], f"@echo {number}" if number % 2 else f"chat {number}")
        for run in result["runs"]:
            talk.join(three[(number + 1) % 3], run["run_id"])
    for each in three:
        assert [message["seq"] for message in messages(talk, each)] == list(range(1, 14))
    talk.is_free()


def ask(person, method, path, status=200, **options):
    answer = person.request(method, path, **options)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_refused_message_goes_after_its_server_is_gone(cluster):
    """A user's only run makes the message wait; the server that would try again is killed."""
    a, b, _ = cluster(member=SecuredMember, config={"limits": {"runs": 1}}).members
    alice, other = a.as_user("alice"), b.as_user("edit")
    thread = ask(alice, "POST", "/threads", json={})["thread_id"]
    path, mine = f"/threads/{thread}", f"/threads/{ask(other, 'POST', '/threads', json={})['thread_id']}"
    share = {"issuer": "main", "role": "editor", "subject": "edit"}
    ask(alice, "POST", f"{path}/participants", json=share)
    body = {"graph_id": "approval", "name": "Clerk"}
    agent = {"assistant_id": ask(alice, "POST", "/assistants", json=body)["assistant_id"]}
    ask(alice, "PUT", f"{path}/room", json={"agents": [agent]})
    ask(alice, "POST", f"{path}/room/messages", 201, json={"content": "@Clerk, may I?"})

    def question():
        return ask(alice, "GET", f"{path}/room/messages", params={"state": "pending"})

    eventually(question)
    late = ask(other, "POST", f"{path}/room/messages", 201, json={"content": "@Clerk, hello"})["message"]["id"]
    nap = ask(other, "POST", f"{mine}/runs", json={"assistant_id": "nap", "input": {"ms": 3_600_000}})["run_id"]
    reply = {"content": "yes", "reply_to": question()[0]["id"]}
    eventually(lambda: alice.post(f"{path}/room/messages", json=reply).status_code == 201)
    eventually(lambda: not question())
    eventually(lambda: "still waits" in a.log.read_text())
    a.kill()
    assert ask(other, "GET", f"{path}/room/messages/{late}/runs") == []
    ask(other, "POST", f"{mine}/runs/{nap}/cancel", params={"wait": "true"})
    eventually(lambda: ask(other, "GET", f"{path}/room/messages/{late}/runs"))
