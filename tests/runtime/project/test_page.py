"""The chat page beside an application of the project: the application's routes take precedence."""

from __future__ import annotations

import json

import httpx
import pytest
from programs import wait_for

STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def say(request):
    return PlainTextResponse(f"app: {request.method} {request.url.path}")


app = Starlette(routes=[ROUTES])
"""

# Its routes are unknown.
PLAIN = """
HAS = {HAS}


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = f"app: {scope['method']} {scope['path']}".encode()
    status = 200 if scope["path"] in HAS else 404
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})
"""


def ask(method: str, server, path: str, **options) -> httpx.Response:
    return httpx.request(method, server.url + path, timeout=60, **options)


def starlette(routes: str) -> str:
    return STARLETTE.replace("ROUTES", routes)


@pytest.fixture
def served(project):
    """served(code, …): a server with that application."""

    def create(code: str, **http):
        files = {"site.py": code}
        config = {"http": {"app": "./site.py:app", **http}}
        server = project(config=config, files=files)
        # Until then it gets no requests.
        wait_for(lambda: ask("get", server, "/there").text.startswith("app: "), what="the application")
        return server

    return create


def is_page(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and answer.text.startswith("<!doctype html>")


THERE = 'Route("/there", say)'


def test_the_page_where_the_application_has_no_route(served):
    server = served(starlette(THERE))
    assert is_page(ask("get", server, "/"))
    assert ask("head", server, "/").status_code == 200
    assert ask("get", server, "/assets/none.js").status_code == 404
    assert ask("get", server, "/page/settings").json()["needs_sign_in"] is False


@pytest.mark.parametrize("route", ['Route("/", say)', 'Route("/{rest:path}", say)'])
def test_declared_routes_are_the_applications(served, route):
    server = served(starlette(f"{THERE}, {route}"))
    assert ask("get", server, "/").text == "app: GET /"
    # API paths do not belong to the page.
    assert ask("get", server, "/info").json()["name"] == "heddle"


def test_undeclared_routes_are_the_applications_too(served):
    server = served(PLAIN.replace("{HAS}", repr({"/", "/there", "/assets/mine.js"})))
    assert ask("get", server, "/").text == "app: GET /"
    assert ask("post", server, "/", json={}).text == "app: POST /"
    assert ask("get", server, "/assets/mine.js").text == "app: GET /assets/mine.js"
    assert json.loads(ask("get", server, "/assets/other.js").text) == {"detail": "Not Found"}


def test_the_page_where_the_application_answers_404(served):
    server = served(PLAIN.replace("{HAS}", repr({"/there"})))
    assert is_page(ask("get", server, "/"))
    assert ask("post", server, "/", json={}).status_code == 404  # as without the page


def test_the_page_can_be_left_out(project):
    server = project(
        config={"http": {"app": "./site.py:app"}, "page": {"enabled": False}},
        files={"site.py": PLAIN.replace("{HAS}", repr({"/there"}))},
    )
    wait_for(lambda: ask("get", server, "/there").text.startswith("app: "), what="the application")
    answer = ask("get", server, "/")
    assert (answer.status_code, answer.text) == (404, "app: GET /")
