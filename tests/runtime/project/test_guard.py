"""http.enable_custom_route_auth: access to an application, and its user; in both languages."""

from __future__ import annotations

import httpx
import pytest

PYTHON = {
    "auth.py": """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict) -> dict:
    key = (headers.get(b"x-key") or headers.get("x-key") or b"")
    key = key.decode() if isinstance(key, bytes) else key
    if key != "open sesame":
        raise Auth.exceptions.HTTPException(status_code=401, detail="who?")
    return {"identity": "ali", "permissions": ["all"]}
""",
    "app.py": """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def me(request):
    user = request.scope.get("user")
    return JSONResponse({"me": user.identity if user else None})


app = Starlette(routes=[Route("/me", me)])
""",
}

TYPESCRIPT = {
    "auth.ts": """
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth().authenticate(async (request: Request) => {
  if (request.headers.get("x-key") !== "open sesame") throw new HTTPException(401, { message: "who?" });
  return { identity: "ali", permissions: ["all"] };
});
""",
    "app.ts": """
import { Hono } from "hono";

export const app = new Hono();

app.get("/me", (c) => c.json({ me: "somebody" }));
app.get("/stream", () => new Response(new ReadableStream({
  start(controller) {
    for (const word of ["a", "b", "c"]) controller.enqueue(new TextEncoder().encode(word));
    controller.close();
  },
})));
""",
}

ECHO = """{"name": "echo", "state": {"x": {}}, "nodes": {"n": {"kind": "set", "update": {"x": 1}}},
"edges": [["__start__", "n"], ["n", "__end__"]]}"""


@pytest.mark.parametrize(("files", "ending"), [(PYTHON, "py"), (TYPESCRIPT, "ts")], ids=["python", "typescript"])
def test_routes_are_for_users(files, ending, project):
    http = {"app": f"./app.{ending}:app", "enable_custom_route_auth": True}
    server = project(
        config={"graphs": {"echo": "./echo.json"}, "auth": {"path": f"./auth.{ending}:auth"}, "http": http},
        files={**files, "echo.json": ECHO},
    )

    def ask(path: str, **headers) -> httpx.Response:
        return httpx.get(server.url + path, headers=headers, timeout=120)

    assert ask("/me").status_code == 401
    answer = ask("/me", **{"x-key": "open sesame"})
    assert answer.status_code == 200, server.tail()
    assert answer.json() == {"me": "ali" if ending == "py" else "somebody"}
    if ending == "ts":
        assert ask("/stream", **{"x-key": "open sesame"}).text == "abc"
    assert ask("/nowhere").status_code == 401
    assert ask("/").text.startswith("<!doctype html>")  # the chat page, where users sign in
    assert ask("/nowhere", **{"x-key": "open sesame"}).status_code == 404


def test_without_it_routes_are_open(project):
    server = project(
        config={"graphs": {"echo": "./echo.json"}, "auth": {"path": "./auth.py:auth"}, "http": {"app": "./app.py:app"}},
        files={**PYTHON, "echo.json": ECHO},
    )
    answer = httpx.get(server.url + "/me", timeout=120)
    assert (answer.status_code, answer.json()) == (200, {"me": None}), server.tail()
    assert httpx.post(server.url + "/threads", json={}, timeout=120).status_code == 401
