"""http.app: an application in a worker, beside native graphs and graphs that fail to load."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from programs import wait_for

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def served(dev_module):
    server = dev_module(folder=HERE / "app")
    server.waits_for("http.app")
    return server


@pytest.fixture
def client(served):
    with served.client() as client:
        yield client


def test_dev_reports_graphs_that_fail_to_load(served):
    said = served.said()
    assert "Native graphs:\n  + echo\n" in said
    place = served.project / "broken.py"
    assert (
        f"  ! broken           ./broken.py:graph: could not be loaded\n"
        f"      ModuleNotFoundError: No module named 'no_such_package'\n      {place}:3\n" in said
    )
    assert "  ! missing          ./shop.py:graph: could not be loaded\n" in said and 'has no "graph"' in said
    assert "  + http.app\n" in said


def test_the_others_are_served(served):
    values = served.wait("echo", {"messages": [{"role": "user", "content": "still here"}]})
    assert values["messages"][-1]["content"] == "still here"


def test_routes_get_their_requests(client):
    assert client.get("/shop/items/a%20b", params={"q": "c d"}).json() == {"name": "a b", "q": "c d", "is_open": True}
    counted = client.post("/shop/count", content=b"x" * 3_000_000, headers={"x-mine": "h"})
    assert counted.json() == {"bytes": 3_000_000, "header": "h"}


def test_the_document_describes_them_too(client):
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert document["paths"]["/shop/items/{name}"]["get"]["parameters"][0]["name"] == "name"
    body = document["paths"]["/shop/orders"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/App.Order"} and schemas["App.Order"]["required"] == ["name"]
    assert "tags" not in document["paths"]["/info"]["get"]  # it replaces the server's
    assert document["paths"]["/threads"]["post"]["tags"] and "Thread" in schemas
    assert len(document["paths"]) == len(set(document["paths"])) > 30


def test_responses_pass_unchanged(client):
    answer = client.get("/shop/headers")
    assert (answer.status_code, answer.text) == (418, "grüezi")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert [value.split(";")[0] for value in answer.headers.get_list("set-cookie")] == ["a=1", "b=2"]
    assert (b"x-mine", b"caf\xe9") in answer.headers.raw
    assert client.get("/shop/empty").status_code == 204


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", ["content-type", "x-mine"])
def test_a_header_is_one_header(client, name, is_streamed):
    ask = {"name": name, "is_streamed": is_streamed}
    assert client.get("/shop/typed", params={**ask, "type": "text/x"}).headers[name].startswith("text/x")
    answer = client.get("/shop/typed", params={**ask, "type": "text/x\r\nset-cookie: a=1"})
    assert (answer.status_code, "set-cookie" in answer.headers) == (502, False)


def test_it_comes_before_a_route_of_the_server(client):
    assert client.get("/info").json() == {"name": "shop"}
    assert client.get("/ok").json() == {"ok": True}
    assert client.get("/openapi.json").json()["info"]["title"] == "Heddle"


def test_unknown_paths_are_not_found(client):
    assert client.get("/nowhere").status_code == 404
    assert client.post("/store/items/search", json={"namespace_prefix": []}).status_code == 404


def test_errors_are_a_500_and_in_the_log(served, client):
    answer = client.get("/shop/fail")
    assert answer.status_code == 500 and "reason" not in answer.text
    served.waits_for(f"ValueError: a reason for the log ({served.project / 'shop.py'}:")


def test_answers_are_streamed(client):
    with client.stream("GET", "/shop/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "".join(answer.iter_text()) == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    large = client.get("/shop/large").content
    assert len(large) == 400 * 65536 and all(large[n * 65536] == n % 256 for n in range(400))


def test_disconnecting_stops_it(served, client):
    with httpx.stream("GET", served.url + "/shop/endless", timeout=60) as answer:
        next(answer.iter_bytes())
    wait_for(lambda: client.get("/shop/items/x").json().get("was_left"), what="the generator's end")


def test_web_sockets_are_refused(client):
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"}
    assert client.get("/shop/socket", headers=headers).status_code == 501
