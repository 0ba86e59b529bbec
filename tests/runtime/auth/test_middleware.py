"""Middleware of the application around the server's own routes, in both languages."""

from __future__ import annotations

import json

import pytest
from plain import events

PYTHON = """
from fastapi import FastAPI, Request, Response

app = FastAPI()

@app.middleware("http")
async def watch(request: Request, call_next):
    if request.headers.get("x-block"):
        return Response("blocked", status_code=418)
    if ticket := request.headers.get("x-ticket"):
        request.scope["headers"] = [*request.scope["headers"], (b"authorization", f"Bearer {ticket}".encode())]
    response = await call_next(request)
    user = request.scope.get("user")
    response.headers["x-wrapped"] = user.identity if user else "yes"
    return response

@app.get("/own")
async def own():
    return {"own": True}
"""

JS = """
import { Hono } from "hono";

const app = new Hono();
app.use(async (c, next) => {
  if (c.req.header("x-block")) return c.text("blocked", 418);
  const ticket = c.req.header("x-ticket");
  if (ticket) {
    const headers = new Headers(c.req.raw.headers);
    headers.set("authorization", `Bearer ${ticket}`);
    c.req.raw = new Request(c.req.raw, { headers });
  }
  await next();
  c.header("x-wrapped", c.get("auth")?.user.identity ?? "yes");
});
app.get("/own", (c) => c.json({ own: true }));
export { app };
"""

SOURCES = {"python": ("app.py", PYTHON), "js": ("app.mts", JS)}
SAY = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "ä" * 40_000}]}}


def serve(make, language: str, **http):
    name, text = SOURCES[language]
    return make(language, files={name: text}, config={"http": {"app": f"./{name}:app", **http}})


@pytest.fixture(scope="module")
def served(guarded_module, language):
    return serve(guarded_module, language)


@pytest.fixture(scope="module")
def auth_first(guarded_module, language):
    return serve(guarded_module, language, middleware_order="auth_first")


def test_middleware_sees_requests_for_routes_of_the_server(served):
    ada = served.as_user("t-ada").client
    made = ada.post("/threads", json={"metadata": {"a b": "ü"}})
    assert (made.status_code, made.headers["x-wrapped"]) == (200, "yes")
    thread = made.json()["thread_id"]
    assert made.json()["metadata"]["a b"] == "ü"
    found = ada.get(f"/threads/{thread}", params={"include": "ttl"})
    assert found.json()["thread_id"] == thread and "x-wrapped" in found.headers
    assert ada.delete(f"/threads/{thread}").status_code == 204
    missing = ada.get(f"/threads/{thread}")
    assert (missing.status_code, missing.headers["x-wrapped"]) == (404, "yes") and "detail" in missing.json()
    own = ada.get("/own")
    assert (own.json(), own.headers["x-wrapped"]) == ({"own": True}, "yes")
    assert "x-wrapped" not in ada.get("/ok").headers


def test_streams_go_through_it(served):
    ada = served.as_user("t-ada").client
    answer = ada.post("/runs/stream", json={**SAY, "stream_mode": ["values"]})
    assert answer.headers["x-wrapped"] == "yes" and answer.headers["content-type"].startswith("text/event-stream")
    told = [data for event, data, _ in events(answer.text) if event == "values"]
    assert told[-1]["messages"][-1]["content"].startswith("You said: ä"), json.dumps(told)[:300]


def test_it_may_refuse_before_the_server_sees_a_request(served):
    ada = served.as_user("t-ada").client
    before = ada.post("/threads/count", json={}).json()
    refused = ada.post("/threads", json={}, headers={"x-block": "1"})
    assert (refused.status_code, refused.text) == (418, "blocked")
    assert ada.post("/threads/count", json={}).json() == before


def test_it_comes_before_credentials_are_checked(served):
    nobody = served.as_user(None).client
    refused = nobody.post("/threads/search", json={})
    assert (refused.status_code, refused.headers["x-wrapped"]) == (401, "yes")
    found = nobody.post("/threads", json={}, headers={"x-ticket": "t-bob"})
    assert found.status_code == 200, found.text
    bob = served.as_user("t-bob").client
    assert bob.get(f"/threads/{found.json()['thread_id']}").status_code == 200


def test_auth_first_hides_requests_without_credentials_from_it(auth_first):
    nobody = auth_first.as_user(None).client
    refused = nobody.post("/threads/search", json={}, headers={"x-ticket": "t-ada"})
    assert refused.status_code == 401 and "x-wrapped" not in refused.headers
    ada = auth_first.as_user("t-ada").client
    made = ada.post("/threads", json={}, headers={"x-ticket": "t-bob"})
    assert (made.status_code, made.headers["x-wrapped"]) == (200, "ada")
    # The caller stays the authenticated user, whatever the middleware sets.
    assert ada.get(f"/threads/{made.json()['thread_id']}").status_code == 200
