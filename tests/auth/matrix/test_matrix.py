"""Every operation, sent by every kind of user, about everything: authorized requests succeed, and
refused ones reveal nothing.

The table of requests is rows.py; the operations and their access rules come from the router
(/openapi.json). An operation without a row therefore fails here, and so does one that admits the
wrong users. The expected result of a cell follows from `x-heddle-access` and the rules below.

Refused requests come first; then the owner's things must be unchanged; then the allowed requests
follow.
"""

from __future__ import annotations

import uuid
from functools import partial

import pytest
from programs import wait_for
from rows import NAMES, ROWS, human
from secured import STORES, Secured
from tokens import bad_tokens
from world import GRAPHS, SYSTEM_ASSISTANT, Answer, Person, Things, mask, missing, names_of, send

RANK = {"viewer": 1, "editor": 2, "owner": 3}
OPERATIONS = sorted(ROWS)
TRIES = 5  # measurements: background work may be counted once, but not every time
NAMED = [f"{method} {path}" for method, path in OPERATIONS]


def places(token: str) -> list[dict]:
    """Places in which the server does not look for a token."""
    return [
        {"headers": {"Cookie": f"authorization=Bearer {token}; token={token}; sb-access-token={token}"}},
        {"headers": {"Authorization": f"Basic {token}"}},
        {"headers": {"Authorization": token}},
        {"headers": {"x-auth-scheme": "langsmith"}},
        {"headers": {"x-api-key": token}},
        {"params": {"token": token, "access_token": token}},
    ]


class World:
    """A server on which `owner` has things, some of them shared, and `stranger` has others."""

    def __init__(self, store: str):
        # Background work would count as store reads.
        options = ["--ttl-sweep-interval", "0", "--log-level", "debug"]
        self.server = Secured(store=store, config={"stream": {"heartbeat": 1}}, options=options, graphs=GRAPHS).start()
        self.owner = self.person("owner")
        self.editor, self.viewer, self.stranger = map(self.person, ("editor", "viewer", "stranger"))
        self.root = Person(self.server, "root", self.server.main.admin("root"))
        self.bad = {
            name: self.server.client(token) for name, token in bad_tokens(self.server.main, self.owner.subject).items()
        }
        self.bad["no token"] = self.server.client()
        self.misplaced = [self.server.client(**place) for place in places(self.owner.token)]
        self.operations = self.server.operations()
        self.shared = self.plant_shared()
        self.private = self.owner.plant()
        self.foreign = self.stranger.plant()
        self.before = self.owner.snapshot()

    def person(self, role: str) -> Person:
        subject = f"{role}-{uuid.uuid4()}"
        return Person(self.server, subject, self.server.user(subject))

    def plant_shared(self, makes: str | None = None) -> Things:
        """Creates things of the owner, with a thread that the editor and the viewer participate in."""
        things = self.owner.plant(makes)
        for person, role in ((self.editor, "editor"), (self.viewer, "viewer")):
            self.owner.share(things["thread_id"], person.subject, role)
        return Things(things, invitation_token=self.owner.invite(things["thread_id"]))

    def access(self, operation: tuple[str, str]) -> str:
        return self.operations[operation]["x-heddle-access"]

    def close(self) -> None:
        for each in (
            self.owner,
            self.editor,
            self.viewer,
            self.stranger,
            self.root,
            *self.bad.values(),
            *self.misplaced,
        ):
            each.close()
        try:
            self.server.stop()
        finally:
            self.server.remove()

    # ---- cost of requests ---------------------------------------------

    def cost(self) -> tuple[int, int]:
        """Returns the number of store reads and writes so far, once the server is idle."""

        def look():
            now = self.root.ask("GET", "/metrics", params={"format": "json"})
            is_quiet = now["heddle_runs_running"] == now["heddle_store_calls"] == 0
            return is_quiet and (now["heddle_store_reads_total"], now["heddle_store_writes_total"])

        return wait_for(look, what="a server at rest")

    def measure(self, *requests) -> tuple[list, list[tuple[int, int]]]:
        """Returns the result and the cost of each request. Measuring itself costs nothing."""
        marks, given = [self.cost()], []
        for request in requests:
            given.append(request())
            marks.append(self.cost())
        return given, [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:], strict=False)]


@pytest.fixture(scope="module", params=STORES)
def world(request):
    made = World(request.param)
    yield made
    made.close()


operation = pytest.mark.parametrize("operation", OPERATIONS, ids=NAMED)


def leaks(world: World, answer) -> list[str]:
    """Returns the texts of the owner that are in a response."""
    said = answer.everything()
    return [text for text in (world.owner.mark, world.owner.subject) if text in said]


# ---- the table -------------------------------------------------------------


def test_every_operation_has_a_row(world):
    assert set(world.operations) == set(ROWS)
    for name, each in world.operations.items():
        assert each["x-heddle-access"] in ("public", "user", "viewer", "editor", "owner", "admin"), name


OF_THE_CALLER = {("PUT", "/threads/{thread_id}/room/read")}  # a mark of the caller's own


def test_every_thread_in_a_path_has_a_role(world):
    for (method, path), each in world.operations.items():
        is_thread = path.startswith("/threads/{thread_id}")
        assert is_thread == (each["x-heddle-access"] in RANK), (method, path)
        if method in ("PUT", "PATCH", "DELETE") and is_thread and (method, path) not in OF_THE_CALLER:
            assert (ROWS[method, path].needs or each["x-heddle-access"]) != "viewer", (method, path)


# ---- unauthorized users ----------------------------------------------------


@operation
def test_without_good_credentials(world, operation):
    """No token, and every bad one: all requests get the same response."""
    method, path = operation
    row = ROWS[operation]

    def ask(ids: Things) -> dict:
        return {name: send(http, method, path, row, ids) for name, http in world.bad.items()}

    for _ in range(TRIES):
        (there, nowhere), costs = world.measure(lambda: ask(world.private), lambda: ask(missing_things(world.private)))
        if world.access(operation) == "public" or costs == [(0, 0), (0, 0)]:
            break
    else:
        raise AssertionError(f"the store is asked for those: {costs}")
    for name, answer in there.items():
        assert not leaks(world, answer), name
        if world.access(operation) == "public":
            assert answer.status == row.ok, name
            continue
        assert answer.status == 401, f"{name}: {answer}"
        assert set(answer.headers.get("www-authenticate", "").split()) >= {"Bearer"}, answer.headers
        assert answer.masked() == nowhere[name].masked(), name


@operation
def test_credentials_in_other_places(world, operation):
    """The server looks for a token in one place."""
    method, path = operation
    if world.access(operation) == "public":
        return
    for http in world.misplaced:
        answer = send(http, method, path, ROWS[operation], world.private)
        assert answer.status == 401, f"{http.headers}: {answer}"


def missing_things(things: Things) -> Things:
    return Things({name: missing(name) if name in NAMES else value for name, value in things.items()})


@operation
def test_acting_for_others(world, operation):
    """Only administrators may do this, and then have the rights of that user."""
    method, path = operation
    row, access = ROWS[operation], world.access(operation)
    if access == "public":
        return
    for whom in (f"main/{world.owner.subject}", "main/nobody", "main", ""):
        with world.server.client(world.stranger.token, headers={"Heddle-Act-For": whom}) as http:
            answer = send(http, method, path, row, world.private)
        assert answer.status == 403 and not leaks(world, answer), (whom, answer)


@operation
def test_other_users_are_refused(world, operation):
    method, path = operation
    row, access = ROWS[operation], world.access(operation)
    answer = send(world.stranger.http, method, path, row, world.private)
    assert not leaks(world, answer), answer
    assert answer.status < 500
    if access == "admin":
        assert answer.status == 403
    elif access in RANK or is_about_one_thing(path):
        assert answer.status == row.gone, answer


def is_about_one_thing(path: str) -> bool:
    return "{" in path


# ---- things of other users -------------------------------------------------


def others(operation, mine: Things, theirs: Things):
    """Yields (name, things with theirs, a function that returns a missing one) for each name."""
    method, path = operation
    for name in sorted(names_of(method, path, ROWS[operation], mine) & set(NAMES)):
        yield (
            name,
            Things(mine, **{name: theirs[name]}),
            lambda name=name: Things(mine, **{name: missing(name, theirs[name])}),
        )
    if path.startswith("/threads/{thread_id}/"):  # the whole path names their thread
        yield "thread_id", theirs, lambda: Things(theirs, thread_id=missing("thread_id"))


def check_cell(world: World, http, operation, name: str, things: Things, absent) -> None:
    """An id of theirs and a missing id get the same response at the same cost."""
    method, path = operation

    def ask(ids: Things) -> Answer:
        return send(http, method, path, ROWS[operation], ids)

    for _ in range(TRIES):
        none = absent()
        (answer, other), costs = world.measure(partial(ask, things), partial(ask, none))
        assert answer.masked(things.get(name)) == other.masked(none.get(name)), name
        assert not leaks(world, answer), name
        if costs[0] == costs[1]:
            return
    raise AssertionError(f"{name}: reads and writes {costs[0]} where there is one, {costs[1]} where there is none")


def test_costs_are_counted(world):
    """Otherwise all requests would cost the same."""
    path, missing_path = (f"/threads/{id}" for id in (world.foreign["thread_id"], missing("thread_id")))
    _, (read, none, change) = world.measure(
        lambda: world.stranger.ask("GET", path + "/state"),
        lambda: world.stranger.ask("GET", missing_path + "/state", 404),
        lambda: world.stranger.ask("PATCH", path, json={"metadata": {"more": 1}}),
    )
    assert read[0] > none[0] > 0 and read[1] == none[1] == 0 and change[1] > 0, (read, none, change)


@operation
def test_things_of_others(world, operation):
    """A stranger's request with the id of a thread, run, checkpoint, assistant, cron, item … of the
    owner."""
    mine = Things(
        world.foreign, assistant_id=SYSTEM_ASSISTANT if "/runs" in operation[1] else world.foreign["assistant_id"]
    )
    if world.access(operation) in ("public", "admin"):
        return
    for name, things, absent in others(operation, mine, world.private):
        if name.startswith("new_"):
            continue  # test_taken_ids
        check_cell(world, world.stranger.http, operation, name, things, absent)


@operation
def test_other_objects_of_participants(world, operation):
    """A participant has access to that thread only: not to the owner's other threads or their
    contents."""
    if world.access(operation) not in RANK:
        return
    mine = Things(world.shared, assistant_id=SYSTEM_ASSISTANT)
    for person, role in ((world.editor, "editor"), (world.viewer, "viewer")):
        for name, things, absent in others(operation, mine, world.private):
            if name == "assistant_id" or not name.startswith("new_"):
                may = RANK[role] >= RANK[world.access(operation)]
                if may or name == "thread_id":
                    check_others(world, person.http, operation, name, things, absent)


def check_others(world: World, http, operation, name: str, things: Things, absent) -> None:
    method, path = operation
    none = absent()
    answer = send(http, method, path, ROWS[operation], things)
    other = send(http, method, path, ROWS[operation], none)
    assert answer.masked(things.get(name)) == other.masked(none.get(name)), name


def test_bodies_that_name_threads_of_others(world):
    """Prune, cancel, batch: another user's thread is skipped like a missing one."""
    mine, theirs = world.foreign, world.private
    http = world.stranger.http
    for strategy in ("delete", "keep_latest"):
        answers = [
            http.post("/threads/prune", json={"thread_ids": [id], "strategy": strategy})
            for id in (theirs["thread_id"], missing("thread_id"))
        ]
        assert answers[0].status_code == answers[1].status_code
        assert {mask(a.text, theirs["thread_id"]) for a in answers[:1]} == {mask(answers[1].text)}
    answers = [
        http.post("/runs/batch", json=[{"assistant_id": SYSTEM_ASSISTANT}, {"assistant_id": id}])
        for id in (theirs["assistant_id"], missing("assistant_id"))
    ]
    assert [a.status_code for a in answers] == [answers[0].status_code] * 2
    assert mask(answers[0].text) == mask(answers[1].text)
    for action in ("interrupt", "rollback"):
        body = {"thread_id": theirs["thread_id"], "run_ids": [theirs["run_id"]]}
        other = {"thread_id": missing("thread_id"), "run_ids": [missing("run_id")]}
        answers = [http.post("/runs/cancel", params={"action": action}, json=each) for each in (body, other)]
        assert answers[0].status_code == answers[1].status_code
        assert mask(answers[0].text) == mask(answers[1].text)
    assert mine["thread_id"] != theirs["thread_id"]


def test_searches_find_nothing_of_others(world):
    mark = world.owner.mark
    asked = {
        "/threads/search": [
            {"metadata": {"note": mark}}, {"metadata": {"owner": world.owner.subject}}, {"ids": [world.private["thread_id"]]},
            {"limit": 1000}, {"status": "idle"},
        ],
        "/assistants/search": [{"name": mark}, {"metadata": {"note": mark}}, {"limit": 1000}],
        "/runs/crons/search": [{"assistant_id": world.private["assistant_id"]}, {"metadata": {"note": mark}}, {"limit": 1000}],
        "/store/items/search": [
            {"namespace_prefix": []}, {"namespace_prefix": [f"{mark}-space"]}, {"namespace_prefix": [], "query": mark},
        ],
        "/store/namespaces": [{}, {"prefix": [f"{mark}-space"]}],
    }  # fmt: skip
    for path, bodies in asked.items():
        for body in bodies:
            answer = world.stranger.http.post(path, json=body)
            assert answer.status_code == 200, answer.text
            assert mark not in answer.text and world.owner.subject not in answer.text, (path, body)
            assert world.private["thread_id"] not in answer.text
            assert mark in world.owner.http.post(path, json=body).text, "what was looked for is there"
    for path, body in (
        ("/threads/count", {"metadata": {"note": mark}}), ("/assistants/count", {"metadata": {"note": mark}}),
        ("/runs/crons/count", {"metadata": {"note": mark}}),
    ):  # fmt: skip
        assert world.stranger.http.post(path, json=body).json() == 0, path
        assert world.owner.http.post(path, json=body).json() > 0, path


def test_nothing_of_the_owner_has_changed(world):
    assert world.owner.snapshot() == world.before


# Operations that create a thing, and the request that shows it to its owner.
CREATING = {
    "new_thread_id": (("POST", "/threads"), lambda id: ("GET", f"/threads/{id}", {})),
    "new_assistant_id": (("POST", "/assistants"), lambda id: ("GET", f"/assistants/{id}", {})),
    "new_item": (
        ("PUT", "/store/items"),
        lambda item: ("GET", "/store/items", {"params": {"namespace": item["namespace"][0], "key": item["key"]}}),
    ),
}


@pytest.mark.parametrize("name", CREATING)
def test_taken_ids(world, name):
    """Creating a thing with an id that another user has succeeds: no conflict reveals that it
    exists."""
    operation, look = CREATING[name]
    make = {
        "new_thread_id": world.owner.make_thread,
        "new_assistant_id": world.owner.make_assistant,
        "new_item": lambda: world.owner.make_item(f"space{uuid.uuid4().hex}"),
    }[name]
    for _ in range(TRIES):
        taken = make()
        method, path, options = look(taken)
        before = world.owner.ask(method, path, **options)
        things = Things(world.foreign, **{name: taken})
        free = Things(world.foreign, **{name: missing(name)})
        ask = partial(send, world.stranger.http, *operation, ROWS[operation])
        seen, costs = world.measure(partial(ask, things), partial(ask, free))
        assert [answer.status for answer in seen] == [ROWS[operation].ok] * 2, seen
        assert seen[0].masked(taken) == seen[1].masked(free[name])
        assert not leaks(world, Answer(0, seen[0].text.replace(str(taken), ""), seen[0].headers))
        assert world.owner.ask(method, path, **options) == before
        assert world.stranger.ask(method, path, **options) != before
        if costs[0] == costs[1]:
            return
    raise AssertionError(f"reads and writes {costs}: a taken id and a free one")


@pytest.mark.parametrize("path", ["/runs", "/runs/wait", "/runs/stream"])
def test_runs_on_taken_ids(world, path):
    """A run that creates a missing thread creates one, also if another user has that id."""
    body = {"assistant_id": SYSTEM_ASSISTANT, "input": human("hello"), "if_not_exists": "create"}
    taken = world.owner.make_thread()
    for _ in range(2):
        before = world.owner.ask("GET", f"/threads/{taken}")
        answer = world.stranger.http.post(f"/threads/{taken}{path}", json=body)
        assert answer.status_code == 200, answer.text
        assert world.owner.mark not in answer.text
        assert world.owner.ask("GET", f"/threads/{taken}") == before
        assert world.owner.ask("GET", f"/threads/{taken}/runs") == []
        assert world.stranger.ask("GET", f"/threads/{taken}")["metadata"]["owner"] == world.stranger.subject
    # Without if_not_exists the thread does not exist.
    other = world.owner.ask("POST", "/threads", json={})["thread_id"]
    body.pop("if_not_exists")
    answers = [world.stranger.http.post(f"/threads/{id}{path}", json=body) for id in (other, missing("thread_id"))]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert mask(answers[0].text) == mask(answers[1].text)


def test_unknown_routes(world):
    """The response to an unknown path or method is the same for all users."""
    for method, path in (
        ("GET", "/nowhere"),
        ("PUT", "/threads"),
        ("GET", f"/threads/{world.private['thread_id']}/nowhere"),
    ):
        answers = {
            (answer.status_code, mask(answer.text))
            for http in (world.owner.http, world.stranger.http, *world.bad.values())
            for answer in [http.request(method, path)]
        }
        assert len(answers) == 1, (method, path, answers)


# ---- authorized users ------------------------------------------------------


def things_for(world: World, operation, row) -> Things:
    """Returns the things for an authorized request: new ones if it changes them."""
    things = Things(world.shared if row.is_read else world.plant_shared(row.makes))
    if not operation[1].startswith("/assistants"):
        things["assistant_id"] = SYSTEM_ASSISTANT
    return things


@operation
def test_the_owner_may(world, operation):
    row = ROWS[operation]
    person = world.root if world.access(operation) == "admin" else world.owner
    answer = send(person.http, *operation, row, things_for(world, operation, row))
    assert answer.status == row.ok, answer
    if world.access(operation) == "admin":
        assert send(world.owner.http, *operation, row, world.shared).status == 403


@pytest.mark.parametrize("role", ["editor", "viewer"])
@operation
def test_participants_have_the_rights_of_their_role(world, operation, role):
    row, access = ROWS[operation], world.access(operation)
    person = {"editor": world.editor, "viewer": world.viewer}[role]
    needed = row.needs or access
    things = things_for(world, operation, row)
    before = world.owner.ask("GET", f"/threads/{things['thread_id']}")
    answer = send(person.http, *operation, row, things)
    if needed in RANK and RANK[role] >= RANK[needed]:
        assert answer.status == row.ok, answer
    elif needed in RANK and access == "user" and answer.status == row.ok:
        # A list, in which the server skips what this user may not change.
        assert world.owner.ask("GET", f"/threads/{things['thread_id']}") == before
    elif needed in RANK:
        assert answer.status == 403, answer
    elif access == "admin":
        assert answer.status == 403
    elif is_about_one_thing(operation[1]) and access == "user":
        assert answer.status == 404, answer  # assistants and crons are not shared with the thread
    else:
        assert answer.status < 500, answer
    if row.own != "thread" and access == "user":
        assert not leaks(world, answer)
