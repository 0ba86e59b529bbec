"""Several people post to a room: whom they ask, and as whom the runs act."""

from __future__ import annotations

import pytest
from programs import wait_for
from sharing import GRAPHS as BASE
from sharing import crowd

GRAPHS = {**BASE, "approval": BASE["echo"].with_name("approval.json")}


@pytest.fixture
def world(secured, store):
    """Alice's room, with two editors and a viewer; sam is a stranger."""
    server = secured(store=store, graphs=GRAPHS)
    with crowd(server, "alice", "edit", "other", "vera", "sam") as people:
        thread = people["alice"].thread()
        for name, role in (("edit", "editor"), ("other", "editor"), ("vera", "viewer")):
            people["alice"].share(thread, role, subject=name)
        yield people, f"/threads/{thread}"


def assistant(person, name, graph="echo"):
    return person.ask("POST", "/assistants", json={"graph_id": graph, "name": name})["assistant_id"]


def post(person, path, text, status=201, **more):
    return person.ask("POST", f"{path}/room/messages", status, json={"content": text, **more})


def ended(person, path, result):
    for run in result["runs"]:
        wait_for(lambda run=run: person.ask("GET", f"{path}/runs/{run['run_id']}")["status"] == "success")


def test_editors_and_the_owner_post(world):
    people, path = world
    for name, status in {"alice": 201, "edit": 201, "vera": 403, "sam": 404}.items():
        result = post(people[name], path, "hello", status)
        if status == 201:
            assert result["message"]["sender"] == {"type": "person", "id": name, "name": name}
        answer = people[name].http.post(f"{path}/room/messages/stream", json={"content": "hello"})
        assert answer.status_code == (200 if status == 201 else status)


def test_everybody_asks_an_agent_of_the_room(world):
    people, path = world
    clerk = assistant(people["alice"], "Clerk")
    assert post(people["edit"], path, "@Clerk, are you there?")["runs"] == []
    ended(people["alice"], path, post(people["alice"], path, "@Clerk, welcome"))
    result = post(people["edit"], path, "@Clerk, hello")
    assert [run["assistant_id"] for run in result["runs"]] == [clerk]
    ended(people["edit"], path, result)
    state = people["alice"].ask("GET", f"{path}/state", params={"assistant_id": clerk})
    texts = [each["content"] for each in state["values"]["messages"] if each["type"] == "human"]
    assert texts == ["edit: @Clerk, are you there?", "alice: @Clerk, welcome", "edit: @Clerk, hello"]
    run = people["alice"].ask("GET", f"{path}/runs/{result['runs'][0]['run_id']}")
    assert run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"] == "edit"
    config = people["alice"].ask("GET", path)["config"]
    assert "edit" not in str(config)


def test_a_mentioned_person_finds_the_message(world):
    people, path = world
    message = post(people["alice"], path, "@edit and @vera, look")["message"]
    assert [each["id"] for each in message["mentions"]] == ["edit", "vera"]
    for name in "edit", "vera":
        [found] = people[name].ask("GET", "/mentions")
        assert found["message"]["id"] == message["id"]
    for name in "alice", "other", "sam":
        assert people[name].ask("GET", "/mentions") == []


def test_mentions_follow_the_text_of_an_edit(world):
    people, path = world
    clerk = assistant(people["alice"], "Clerk")
    people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": clerk}]})
    message = post(people["alice"], path, "@edit and @other, look", mentions=["other", "edit"])["message"]

    def edit(text, status=200):
        body = {"content": text}
        return people["alice"].ask("PATCH", f"{path}/room/messages/{message['id']}", status, json=body)

    def found():
        return [who for who in people if people[who].ask("GET", "/mentions")]

    assert found() == ["edit", "other"]
    edited = edit("@other, @vera and @clerk, look")
    wanted = [("person", "other"), ("person", "vera"), ("agent", clerk)]
    assert [(each["type"], each["id"]) for each in edited["message"]["mentions"]] == wanted
    assert edited["message"]["runs"] == [] and edited["cascade"] is None
    assert found() == ["other", "vera"]
    [entry] = people["vera"].ask("GET", "/mentions")
    assert entry["message"]["content"] == "@other, @vera and @clerk, look"
    assert entry["created_at"] > message["created_at"]
    assert edit("nobody")["message"]["mentions"] == []
    assert found() == []


def test_an_edit_keeps_mentions_that_the_request_listed(world):
    people, path = world
    listed = post(people["alice"], path, "look", mentions=["vera"])["message"]
    none = post(people["alice"], path, "@edit, look", mentions=[])["message"]
    mentions = {}
    for message, text in (listed, "look here"), (none, "@edit, look here"):
        edited = people["alice"].ask("PATCH", f"{path}/room/messages/{message['id']}", json={"content": text})
        mentions[text] = [each["id"] for each in edited["message"]["mentions"]]
    assert mentions == {"look here": ["vera"], "@edit, look here": []}
    assert len(people["vera"].ask("GET", "/mentions")) == 1 and people["edit"].ask("GET", "/mentions") == []


def test_an_edit_with_an_ambiguous_mention_changes_nothing(world):
    people, path = world
    agents = [assistant(people["alice"], name) for name in ("vera", "Clerk")]
    message = post(people["alice"], path, "look")["message"]
    people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": each} for each in agents]})
    url = f"{path}/room/messages/{message['id']}"
    assert "ambiguous" in people["alice"].ask("PATCH", url, 422, json={"content": "@vera, look"})["detail"]
    shown = people["alice"].ask("GET", url)
    assert (shown["content"], shown["version"], shown["mentions"]) == ("look", 1, [])
    assert people["vera"].ask("GET", "/mentions") == []


def test_the_asker_and_the_owner_answer_a_question(world):
    people, path = world
    clerk = assistant(people["alice"], "Clerk", "approval")
    people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": clerk}]})

    def question():
        found = people["alice"].ask("GET", f"{path}/room/messages", params={"state": "pending"})
        return found[0]["id"] if found else None

    for who in "edit", "alice":
        post(people["edit"], path, "@Clerk, may I?")
        wait_for(question)
        post(people["other"], path, "yes", 403, reply_to=question())
        ended(people["alice"], path, post(people[who], path, "yes", reply_to=question()))
        wait_for(lambda: question() is None)
    people["alice"].ask("PUT", f"{path}/room", json={"answers": "editors"})
    post(people["edit"], path, "@Clerk, may I?")
    wait_for(question)
    assert len(post(people["other"], path, "yes", reply_to=question())["runs"]) == 1


def test_the_limit_of_runs_refuses_a_whole_message(secured, store):
    server = secured(store=store, graphs=GRAPHS, config={"limits": {"runs": 1}})
    with crowd(server, "alice") as people:
        alice = people["alice"]
        path = f"/threads/{alice.thread()}"
        for name in "Clerk", "Judge":
            assistant(alice, name)
        post(alice, path, "@Clerk and @Judge", 429)
        assert alice.ask("GET", f"{path}/room/messages") == []
        ended(alice, path, post(alice, path, "@Clerk"))


def leave(person, path, name):
    """Ends the participation of the user `name`."""
    [found] = [each for each in person.ask("GET", f"{path}/participants") if each["subject"] == name]
    person.ask("DELETE", f"{path}/participants/{found['participant_id']}", 204)


def test_a_person_who_has_left_lends_no_agent(world):
    people, path = world
    scribe = assistant(people["edit"], "Scribe")
    ended(people["edit"], path, post(people["edit"], path, "@Scribe, hello"))
    ended(people["alice"], path, post(people["alice"], path, "@Scribe, hello"))
    leave(people["alice"], path, "edit")
    count = len(people["alice"].ask("GET", f"{path}/room/messages"))
    assert "not there any more" in post(people["alice"], path, "@Scribe, hello", 422)["detail"]
    assert len(people["alice"].ask("GET", f"{path}/room/messages")) == count
    people["alice"].share(path.rpartition("/")[2], "viewer", subject="edit")
    [run] = post(people["alice"], path, "@Scribe, hello")["runs"]
    assert run["assistant_id"] == scribe


def test_a_waiting_message_of_a_person_who_may_not_post_any_more_makes_no_run(world):
    people, path = world
    clerk = assistant(people["alice"], "Clerk", "approval")
    people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": clerk}]})
    post(people["alice"], path, "@Clerk, may I?")
    question = wait_for(lambda: people["alice"].ask("GET", f"{path}/room/messages", params={"state": "pending"}))
    late = {who: post(people[who], path, "@Clerk, hello")["message"]["id"] for who in ("edit", "other", "alice")}
    leave(people["alice"], path, "edit")
    [found] = [each for each in people["alice"].ask("GET", f"{path}/participants") if each["subject"] == "other"]
    body = {"role": "viewer"}
    people["alice"].ask("PATCH", f"{path}/participants/{found['participant_id']}", json=body)
    ended(people["alice"], path, post(people["alice"], path, "yes", reply_to=question[0]["id"]))

    def runs(who):
        return people["alice"].ask("GET", f"{path}/room/messages/{late[who]}/runs")

    wait_for(lambda: runs("alice"))
    assert runs("edit") == [] and runs("other") == []


class Limited:
    """A room with two agents that ask alice something. Two messages wait: the first one, to Clerk, is
    of edit, whose only run lasts until `wake()`; the second one, to Judge, is of alice."""

    def __init__(self, people):
        self.alice, self.edit = people["alice"], people["edit"]
        thread = self.alice.thread()
        self.path = f"/threads/{thread}"
        self.alice.share(thread, "editor", subject="edit")
        agents = [{"assistant_id": assistant(self.alice, name, "approval")} for name in ("Clerk", "Judge")]
        self.alice.ask("PUT", f"{self.path}/room", json={"agents": agents})
        for name in "Clerk", "Judge":
            self.say(f"@{name}, may I?")
            wait_for(lambda name=name: self.question(name), what="a question")
        self.first = post(self.edit, self.path, "@Clerk, hello")["message"]["id"]
        self.second = self.say("@Judge, hello")["message"]["id"]
        self.elsewhere = self.edit.thread()
        self.nap = self.edit.nap(self.elsewhere)

    def say(self, text, **more):
        """Posts a message of alice, whose last run may still count."""

        def posted():
            body = {"content": text, **more}
            answer = self.alice.http.post(f"{self.path}/room/messages", json=body)
            assert answer.status_code in (201, 429), answer.text
            return answer.json() if answer.status_code == 201 else None

        return wait_for(posted)

    def question(self, name):
        found = self.alice.ask("GET", f"{self.path}/room/messages", params={"state": "pending"})
        return next((each["id"] for each in found if each["sender"]["name"] == name), None)

    def answer(self, name):
        ended(self.alice, self.path, self.say("yes", reply_to=self.question(name)))

    def runs(self, message):
        return self.alice.ask("GET", f"{self.path}/room/messages/{message}/runs")

    def wake(self):
        self.edit.wake(self.elsewhere, self.nap)


@pytest.fixture
def limited(secured, store):
    server = secured(store=store, graphs=GRAPHS, config={"limits": {"runs": 1}})
    with crowd(server, "alice", "edit") as people:
        yield server, Limited(people)


def test_a_waiting_message_that_is_refused_delays_no_other_and_goes_later(limited):
    _, room = limited
    room.answer("Clerk")
    room.answer("Judge")
    wait_for(lambda: room.runs(room.second), what="the run of the second message")
    wait_for(lambda: room.question("Judge"), what="another question")
    assert room.runs(room.first) == []
    room.wake()
    wait_for(lambda: room.runs(room.first), what="the run of the first message")


def test_a_waiting_message_goes_after_a_crash(limited):
    server, room = limited
    room.answer("Clerk")
    assert room.runs(room.first) == []
    server.kill()
    server.restart()
    assert room.runs(room.first) == []
    room.wake()
    wait_for(lambda: room.runs(room.first), what="the run of the first message")
