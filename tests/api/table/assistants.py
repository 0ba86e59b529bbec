"""/assistants, endpoint by endpoint: responses and refusals."""

import json
import threading
import uuid
import xml.dom.minidom

import httpx
import pytest
from plain import Thread
from server import GRAPHS, Server
from table import refused, refuses_too_much, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("refuses differently")
MEMBERS = [
    "assistant_id", "graph_id", "name", "description", "config", "context", "created_at", "updated_at", "metadata",
    "version",
]  # fmt: skip
NOT_FOUND = {"detail": "Assistant not found"}


@pytest.fixture
def make(http):
    made = []

    def create(**body) -> dict:
        answer = http.post("/assistants", json={"graph_id": "echo", **body})
        assert answer.status_code == 200, answer.text
        made.append(answer.json()["assistant_id"])
        return answer.json()

    yield create
    for each in made:
        assert http.delete(f"/assistants/{each}").status_code in (200, 404)


@pytest.fixture
def owner() -> dict:
    """Unique metadata."""
    return {"owner": str(uuid.uuid4())}


def path(assistant: dict, rest: str = "") -> str:
    return f"/assistants/{assistant['assistant_id']}{rest}"


# ---- POST /assistants


def test_a_new_assistant(http, make):
    made = make()
    assert list(made) == MEMBERS
    uuid.UUID(made["assistant_id"])
    assert {key: made[key] for key in MEMBERS[1:6]} == {
        "graph_id": "echo", "name": "Untitled", "description": None, "config": {}, "context": {},
    }  # fmt: skip
    assert made["metadata"] == {} and made["version"] == 1 and made["created_at"] == made["updated_at"]
    assert http.get(path(made)).json() == made


def test_all_is_kept_as_it_was_given(http, make):
    given = {
        "assistant_id": str(uuid.uuid4()), "graph_id": "loop", "name": "Ä \u0000 \U0001f9f5", "description": "",
        "config": {"tags": ["x"], "recursion_limit": 1000000, "configurable": {"a": {"b": [1, None]}}, "own": True},
        "metadata": {"n": 12345678901234567890, "deep": {"er": {}}},
    }  # fmt: skip
    made = make(**given)
    assert {key: made[key] for key in given} == given
    assert made["context"] == {"a": {"b": [1, None]}}
    assert http.get(path(made)).json() == made


def test_null_is_nothing(make):
    nothing = dict.fromkeys(("assistant_id", "name", "description", "config", "context", "metadata", "if_exists"))
    made = make(**nothing)
    assert made["name"] == "Untitled" and made["config"] == made["context"] == made["metadata"] == {}
    inside = make(config={"tags": None, "recursion_limit": None, "configurable": None}, unknown="ignored")
    assert inside["context"] == {}


def test_an_id_is_written_in_one_way(http, make):
    own = str(uuid.uuid4())
    assert make(assistant_id=own.upper())["assistant_id"] == own
    assert http.get(f"/assistants/{own.upper()}").json()["assistant_id"] == own


def test_an_existing_assistant(http, make):
    made = make(name="first")
    again = {"graph_id": "loop", "assistant_id": made["assistant_id"], "name": "second"}
    for body in (again, {**again, "if_exists": "raise"}, {**again, "if_exists": None}):
        assert refused(http, "POST", "/assistants", 409, json=body) == "Assistant already exists"
    kept = http.post("/assistants", json={**again, "if_exists": "do_nothing"})
    assert kept.status_code == 200 and kept.json() == made == http.get(path(made)).json()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "graph_id"),
        ({"graph_id": None}, "graph_id"),
        ({"graph_id": ""}, "graph_id"),
        ({"graph_id": 3}, "graph_id"),
        ({"assistant_id": "x"}, "assistant_id"),
        ({"assistant_id": ""}, "assistant_id"),
        ({"assistant_id": []}, "assistant_id"),
        ({"name": 1}, "name"),
        ({"description": {}}, "description"),
        ({"config": []}, "config"),
        ({"config": {"configurable": "x"}}, "config.configurable"),
        ({"config": {"recursion_limit": 0}}, "config.recursion_limit"),
        ({"config": {"recursion_limit": "5"}}, "config.recursion_limit"),
        ({"config": {"recursion_limit": 1.5}}, "config.recursion_limit"),
        ({"config": {"recursion_limit": 1000001}}, "config.recursion_limit"),
        ({"config": {"tags": "x"}}, "config.tags"),
        ({"config": {"tags": [1]}}, "config.tags"),
        ({"context": "x"}, "context"),
        ({"metadata": 3}, "metadata"),
        ({"if_exists": "perhaps"}, "if_exists"),
        ({"if_exists": True}, "if_exists"),
    ],
)
def test_wrong_values(http, make, body, named):
    full = {"graph_id": "echo", **body} if body else body
    refused(http, "POST", "/assistants", 422, named, json=full)
    if body and not {"assistant_id", "if_exists"} & set(body) and body.get("graph_id", 1):
        made = make()
        refused(http, "PATCH", path(made), 422, named, json=body)
        assert http.get(path(made)).json() == made  # unchanged


def test_a_name_that_occurs_twice(http, make):
    text = b'{"graph_id": "echo", "%s": {"a": 1, "a": 2}}'
    for member in (b"config", b"context", b"metadata"):
        refused(http, "POST", "/assistants", 422, "twice", content=text % member)
    refused(http, "PATCH", path(make()), 422, "twice", content=text % b"metadata")


def test_an_unknown_graph(http, make):
    body = {"graph_id": "nobody"}
    assert refused(http, "POST", "/assistants", 404, json=body) == 'Graph with id "nobody" not found'
    refused(http, "PATCH", path(make()), 404, "nobody", json=body)


def test_invalid_bodies(http, make):
    for method, where in (
        ("POST", "/assistants"),
        ("POST", path(make(), "/latest")),
    ):
        refuses_what_is_not_json(http, method, where)
        refuses_too_much(http, method, where)
    for method, where in (
        ("PATCH", path(make())),
        ("POST", "/assistants/search"),
        ("POST", "/assistants/count"),
        ("POST", path(make(), "/versions")),
    ):
        refuses_what_is_not_json(http, method, where, needs_body=False)
        refuses_too_much(http, method, where)
        for content in (b"", b"null", b"{}"):
            assert http.request(method, where, content=content).status_code == 200


# ---- context and configurable


def test_context_and_configurable_are_one(http, make):
    both = {"config": {"configurable": {"a": 1}}, "context": {"b": 2}}
    text = "Cannot specify both configurable and context. Prefer setting context alone."
    assert refused(http, "POST", "/assistants", 400, json={"graph_id": "echo", **both}) == text
    made = make(context={"a": 1}, config={"tags": ["t"]})
    assert made["context"] == {"a": 1} and made["config"] == {"tags": ["t"], "configurable": {"a": 1}}
    assert refused(http, "PATCH", path(made), 400, json=both) == text
    assert http.get(path(made)).json() == made


@pytest.mark.parametrize(
    ("patch", "config", "context"),
    [
        ({}, {"tags": ["t"], "configurable": {"a": 1}}, {"a": 1}),
        ({"context": {"b": 2}}, {"tags": ["t"], "configurable": {"b": 2}}, {"b": 2}),
        ({"context": {}}, {"tags": ["t"]}, {}),
        ({"config": {"configurable": {"c": 3}}}, {"configurable": {"c": 3}}, {"c": 3}),
        ({"config": {"configurable": {"c": 3}}, "context": {}}, {"configurable": {"c": 3}}, {"c": 3}),
        ({"config": {"tags": []}}, {"tags": []}, {}),
        ({"config": {"tags": []}, "context": {"d": 4}}, {"tags": [], "configurable": {"d": 4}}, {"d": 4}),
        ({"config": None, "context": None}, {"tags": ["t"], "configurable": {"a": 1}}, {"a": 1}),
    ],
)
def test_they_change_together(http, make, patch, config, context):
    made = make(config={"tags": ["t"], "configurable": {"a": 1}})
    changed = http.patch(path(made), json=patch).json()
    assert (changed["config"], changed["context"]) == (config, context)
    assert http.get(path(made)).json() == changed


# ---- GET, PATCH


def test_a_graph_stands_for_its_assistant(http):
    own = http.get("/assistants/echo").json()
    assert own["description"] == "Says back what it was told."  # from its file
    assert own["name"] == own["graph_id"] == "echo" and own["metadata"] == {"created_by": "system"}
    assert http.get(path(own)).json() == own


@pytest.mark.parametrize("name", ["nobody", str(uuid.uuid4()), "00000000-0000-0000-0000-00000000000g", "%F0%9F%A7%B5"])
def test_unknown_assistants(http, name):
    for method, rest, body in (
        ("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None), ("POST", "/versions", {}),
        ("POST", "/latest", {"version": 1}), ("GET", "/graph", None), ("GET", "/schemas", None),
        ("GET", "/subgraphs", None), ("GET", "/subgraphs/child", None),
    ):  # fmt: skip
        answer = http.request(method, f"/assistants/{name}{rest}", **({"json": body} if body is not None else {}))
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND), (method, rest)


def test_unsupported_methods(http, make):
    answer = http.put(path(make()), json={})
    assert answer.status_code == 405 and answer.json() == {"detail": "Method Not Allowed"}
    assert {"GET", "PATCH", "DELETE"} <= set(answer.headers["allow"].split(", "))


def test_every_change_is_a_version(http, make):
    made = make(name="one", description="d", metadata={"a": {"x": 1}, "b": 2})
    same = http.patch(path(made), json={}).json()
    assert same["version"] == 2 and same["updated_at"] > made["updated_at"]
    assert {**same, "version": 1, "updated_at": made["updated_at"]} == made
    changed = http.patch(
        path(made), json={"graph_id": "loop", "name": "", "metadata": {"a": {"y": 1}, "c": None}}
    ).json()
    assert changed["version"] == 3 and changed["graph_id"] == "loop" and changed["name"] == ""
    assert changed["description"] == "d" and changed["metadata"] == {"a": {"y": 1}, "b": 2, "c": None}
    assert changed["created_at"] == made["created_at"]


def test_changes_at_the_same_time_are_all_made(server, http, make):
    made, errors = make(), []

    def change(number: int) -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            answer = client.patch(path(made), json={"metadata": {str(number): number}})
            if answer.status_code != 200:
                errors.append(answer.text)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    now = http.get(path(made)).json()
    assert now["version"] == 9 and now["metadata"] == {str(number): number for number in range(8)}
    versions = http.post(path(made, "/versions"), json={"limit": 100}).json()
    assert [each["version"] for each in versions] == list(range(9, 0, -1))


# ---- versions


def test_versions(http, make):
    made = make(name="1", metadata={"n": 1})
    for number in (2, 3, 4):
        http.patch(path(made), json={"name": str(number), "metadata": {"n": number, "even": number % 2 == 0}})
    every = http.post(path(made, "/versions"), json={}).json()
    assert [each["name"] for each in every] == ["4", "3", "2", "1"] and all(list(each) == MEMBERS for each in every)

    def names(**body):
        return [each["name"] for each in http.post(path(made, "/versions"), json=body).json()]

    assert names(limit=2) == ["4", "3"] and names(limit=2, offset=3) == ["1"] and names(offset=4) == []
    assert names(limit=2.0, offset=1e0) == ["3", "2"]  # any notation of an integer
    assert names(metadata={"even": True}) == ["4", "2"] and names(metadata={"even": True}, offset=1) == ["2"]
    assert names(metadata={}) == names(metadata=None, limit=None, offset=None) == ["4", "3", "2", "1"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"limit": "1"}, "limit"), ({"limit": 1.5}, "limit"),
        ({"offset": -1}, "offset"), ({"offset": []}, "offset"), ({"metadata": []}, "metadata"),
    ],
)  # fmt: skip
def test_invalid_pages(http, make, body, named):
    refused(http, "POST", path(make(), "/versions"), 422, named, json=body)
    refused(http, "POST", "/assistants/search", 422, named, json=body)


def test_set_back(http, make):
    made = make(name="1", context={"a": 1})
    http.patch(path(made), json={"name": "2", "context": {"a": 2}, "metadata": {"m": 2}})
    back = http.post(path(made, "/latest"), json={"version": 1}).json()
    assert {**back, "updated_at": made["updated_at"]} == made
    assert http.get(path(made)).json() == back
    assert http.patch(path(made), json={"name": "3"}).json()["version"] == 3  # not 2 again
    forth = http.post(path(made, "/latest"), json={"version": 2}).json()
    assert forth["name"] == "2" and forth["context"] == {"a": 2} and forth["metadata"] == {"m": 2}
    assert len(http.post(path(made, "/versions"), json={}).json()) == 3


def test_invalid_versions(http, make):
    made = make()
    for version in (2, 2**62):
        refused(http, "POST", path(made, "/latest"), 404, "not found", json={"version": version})
    for version in (0, -1, "1", 1.5, None, [1], 2**64):
        refused(http, "POST", path(made, "/latest"), 422, "version", json={"version": version})
    refused(http, "POST", path(made, "/latest"), 422, "version", json={})
    assert http.get(path(made)).json() == made


# ---- search, count


def test_search_by_everything(http, make, owner):
    for name, graph, extra in (
        ("Ann", "echo", {}),
        ("Bob", "loop", {"t": {"a": 1, "b": 2}}),
        ("Joann", "echo", {"t": {"a": 1}}),
    ):
        make(name=name, graph_id=graph, metadata={**owner, **extra})

    def found(metadata=None, **body):
        body = {**body, "metadata": {**owner, **(metadata or {})}}
        names = [each["name"] for each in http.post("/assistants/search", json=body).json()]
        counted = {key: body[key] for key in ("metadata", "graph_id", "name") if key in body}
        if not {"limit", "offset"} & set(body):
            assert http.post("/assistants/count", json=counted).json() == len(names)
        return names

    assert found() == ["Joann", "Bob", "Ann"]  # the newest first
    assert found(graph_id="echo") == ["Joann", "Ann"] and found(graph_id="nobody") == []
    assert found(name="ANN") == ["Joann", "Ann"] and found(name="Jo") == ["Joann"] and found(name="annn") == []
    assert found({"t": {"a": 1}}) == ["Joann", "Bob"] and found({"t": {"a": 1, "b": 2}}) == ["Bob"]
    assert found({"t": {}}) == ["Joann", "Bob"] and found({"t": 1}) == []
    assert found(name="", graph_id=None) == ["Joann", "Bob", "Ann"]
    assert found(limit=2) == ["Joann", "Bob"] and found(limit=2, offset=2) == ["Ann"] and found(offset=3) == []


@pytest.mark.parametrize("key", ["assistant_id", "created_at", "updated_at", "name", "graph_id"])
def test_search_in_every_order(http, make, owner, key):
    for name, graph in (("b", "loop"), ("a", "echo"), ("c", "approval")):
        make(name=name, graph_id=graph, metadata=owner)
    first = http.post("/assistants/search", json={"metadata": owner, "sort_order": "asc"}).json()[0]
    http.patch(path(first), json={})
    for order in ("asc", "desc"):
        body = {"metadata": owner, "sort_by": key, "sort_order": order}
        values = [each[key] for each in http.post("/assistants/search", json=body).json()]
        assert len(values) == 3 and values == sorted(values, reverse=order == "desc")


def test_search_reports_the_next_page(http, make, owner):
    for _ in range(5):
        make(metadata=owner)

    def pages(**body):
        answer = http.post("/assistants/search", json={"metadata": owner, **body})
        return answer.headers["x-pagination-total"], answer.headers.get("x-pagination-next")

    assert pages(limit=2) == ("5", "2") and pages(limit=2, offset=2) == ("5", "4")
    assert pages(limit=2, offset=3) == ("5", None) and pages(limit=5) == ("5", None) and pages(offset=9) == ("5", None)


def test_search_returns_the_selected_members(http, make, owner):
    made = make(name="n", metadata=owner)
    for members in (["name"], ["version", "assistant_id"], MEMBERS, ["name", "name"]):
        (found,) = http.post("/assistants/search", json={"metadata": owner, "select": members}).json()
        assert found == {key: made[key] for key in members}
    assert http.post("/assistants/search", json={"metadata": owner, "select": []}).json() == [made]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"sort_by": "colour"}, "sort_by"), ({"sort_by": 1}, "sort_by"), ({"sort_order": "up"}, "sort_order"),
        ({"select": ["colour"]}, "select"), ({"select": "name"}, "select"), ({"select": [1]}, "select"),
        ({"graph_id": 1}, "graph_id"), ({"name": {}}, "name"), ({"metadata": "x"}, "metadata"),
    ],
)  # fmt: skip
def test_invalid_searches(http, body, named):
    refused(http, "POST", "/assistants/search", 422, named, json=body)
    if named in ("graph_id", "name", "metadata"):
        refused(http, "POST", "/assistants/count", 422, named, json=body)


# ---- delete


def test_delete(http, make):
    made = make()
    http.patch(path(made), json={})
    answer = http.delete(path(made))
    assert answer.status_code == 200 and answer.json() == [made["assistant_id"]]
    for rest in ("", "/graph"):
        assert http.get(path(made, rest)).json() == NOT_FOUND
    assert http.post(path(made, "/versions"), json={}).json() == NOT_FOUND
    again = make(assistant_id=made["assistant_id"])  # no data of the old one is left
    assert again["version"] == 1 and len(http.post(path(again, "/versions"), json={}).json()) == 1


def test_delete_leaves_the_threads(http, make):
    made, thread = make(), Thread(http)
    thread.run(made["assistant_id"], input={"messages": ["hi"]})
    assert http.delete(path(made), params={"delete_threads": "false"}).status_code == 200
    assert thread.record()["metadata"]["assistant_id"] == made["assistant_id"]
    assert thread.state()["values"]["messages"]


def test_delete_stops_the_runs(http, make):
    made, twin = make(graph_id="nap"), make(graph_id="nap")
    first, second = Thread(http), Thread(http)
    body = {"assistant_id": made["assistant_id"], "input": {"ms": 600_000}}
    mine = [
        (thread, thread.ask("POST", thread.path("/runs"), json=body)["run_id"])
        for thread in (first, first, second)
    ]  # fmt: skip
    later = first.ask("POST", first.path("/runs"), json={**body, "after_seconds": 86400})["run_id"]
    other = {**body, "assistant_id": twin["assistant_id"]}
    kept = second.ask("POST", second.path("/runs"), json=other)["run_id"]
    cron = http.post("/runs/crons", json={**body, "schedule": "0 0 1 1 *"}).json()["cron_id"]
    assert http.delete(path(made)).json() == [made["assistant_id"]]
    for thread, run in [*mine, (first, later)]:
        assert thread.ask("GET", thread.path(f"/runs/{run}"))["status"] == "interrupted"
    assert second.ask("GET", second.path(f"/runs/{kept}"))["status"] in ("pending", "running")
    assert cron not in [each["cron_id"] for each in http.post("/runs/crons/search", json={"limit": 1000}).json()]
    assert first.record()["status"] != "busy"
    first.ask("POST", first.path("/runs"), 404, json=body)
    assert http.delete(path(twin)).status_code == 200
    assert second.ask("GET", second.path(f"/runs/{kept}"))["status"] == "interrupted"


def test_delete_with_threads(http, make):
    made, busy, done, other = make(graph_id="nap"), Thread(http), Thread(http), Thread(http)
    done.run(made["assistant_id"], input={"ms": 0})
    busy.ask("POST", busy.path("/runs"), json={"assistant_id": made["assistant_id"], "input": {"ms": 600_000}})
    busy.ask("POST", busy.path("/runs"), json={"assistant_id": made["assistant_id"], "input": {"ms": 600_000}})
    other.run("echo", input={"messages": ["hi"]})
    refused(http, "DELETE", path(made), 422, "delete_threads", params={"delete_threads": "perhaps"})
    assert http.delete(path(made), params={"delete_threads": "true"}).json() == [made["assistant_id"]]
    for gone in (busy, done):
        assert http.get(gone.path("")).status_code == 404
    assert other.record()["status"] == "idle"


def test_the_configuration_describes_graphs():
    running = Server(graphs={"loop": GRAPHS / "loop.json"})
    described = {"path": str(GRAPHS / "echo.json"), "description": 'says "so" \n'}
    (running.folder / "own.json").write_text(json.dumps({"graphs": {"echo": described}}))
    running.options = ["--config", str(running.folder / "own.json")]
    running.graphs = {}
    try:
        running.start()
        found = httpx.get(running.url + "/assistants/echo", timeout=60).json()
        assert found["description"] == described["description"]
        running.stop()
    finally:
        running.remove()


def test_a_system_assistant_comes_back():
    running = Server(graphs={"echo": GRAPHS / "echo.json"})
    try:
        running.start()
        with httpx.Client(base_url=running.url, timeout=60) as http:
            own = http.get("/assistants/echo").json()
            http.patch("/assistants/echo", json={"metadata": {"changed": True}})
            running.stop()
            running.restart()
            assert http.get("/assistants/echo").json()["metadata"] == {"created_by": "system", "changed": True}
            assert http.delete("/assistants/echo").status_code == 200
            assert http.get("/assistants/echo").json() == NOT_FOUND
            running.stop()
            running.restart()
            again = http.get("/assistants/echo").json()
            assert again["assistant_id"] == own["assistant_id"] and again["version"] == 1
        running.stop()
    finally:
        running.remove()


# ---- graph, schemas, subgraphs


@pytest.mark.parametrize(
    ("xray", "opened"),
    [
        (None, False), ("", False), ("false", False), ("0", False), ("no", False),
        ("true", True), ("1", True), ("2", True), ("yes", True), ("2147483647", True),
    ],
)  # fmt: skip
def test_graph(http, xray, opened):
    answer = http.get("/assistants/nested/graph", params={} if xray is None else {"xray": xray})
    nodes = {node["id"] for node in answer.json()["nodes"]}
    assert answer.status_code == 200 and ("child" in nodes) is not opened and ("child:inner" in nodes) is opened
    assert {"__start__", "__end__"} <= nodes


@pytest.mark.parametrize(("xray", "names"), [
    ("false", {"__start__", "before", "child", "__end__"}),
    ("true", {"__start__", "before", "child:choose", "child:question", "child:inner", "__end__"}),
])  # fmt: skip
def test_pictures(http, xray, names):
    answer = http.get("/assistants/nested/graph", params={"xray": xray, "format": "svg"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/svg+xml"
    picture = xml.dom.minidom.parseString(answer.text)
    groups = [each for each in picture.getElementsByTagName("g") if each.getAttribute("class") == "node"]
    assert {each.getAttribute("data-node") for each in groups} == names
    assert not picture.getElementsByTagName("style") and not picture.getElementsByTagName("script")
    everything = picture.getElementsByTagName("*")
    assert not any(each.hasAttribute("style") or each.getAttribute("onload") for each in everything)
    drawn = http.get("/assistants/nested/graph", params={"xray": xray, "format": "json"}).json()
    assert {node["id"] for node in drawn["nodes"]} == names


def test_invalid_pictures(http):
    for wrong in ("png", "SVG", "json svg"):
        refused(http, "GET", "/assistants/nested/graph", 422, "format", params={"format": wrong})
    refused(http, "GET", "/assistants/nobody/graph", 404, params={"format": "svg"})


@pytest.mark.parametrize("xray", ["-1", "1.5", "perhaps", "99999999999999999999"])
def test_unknown_graphs(http, xray):
    refused(http, "GET", "/assistants/nested/graph", 422, "xray", params={"xray": xray})


def test_schemas(http):
    found = http.get("/assistants/nested/schemas").json()
    assert found["graph_id"] == "nested" and found["state_schema"]["type"] == "object"
    assert set(found) == {
        "graph_id", "input_schema", "output_schema", "state_schema", "config_schema", "context_schema",
    }  # fmt: skip


def test_subgraphs(http):
    every = http.get("/assistants/nested/subgraphs").json()
    assert set(every) == {"child"} and set(every["child"]["state_schema"]["properties"]) == {"messages", "ask"}
    for where in ("child", "child%3Asome-task"):
        assert http.get(f"/assistants/nested/subgraphs/{where}").json() == every
    for recurse in ("true", "1", "false", ""):
        assert http.get("/assistants/nested/subgraphs", params={"recurse": recurse}).json() == every
    assert http.get("/assistants/echo/subgraphs").json() == {}
    refused(http, "GET", "/assistants/nested/subgraphs", 422, "recurse", params={"recurse": "perhaps"})
    for where in ("nowhere", "child%7Cinner", "before"):
        assert refused(http, "GET", f"/assistants/nested/subgraphs/{where}", 404) == "Subgraph not found"
