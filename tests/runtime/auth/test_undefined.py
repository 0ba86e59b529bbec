"""Filters in TypeScript with undefined members: they do not match everything."""

import httpx
import pytest

AUTH = """
import { Auth } from "@langchain/langgraph-sdk/auth";

const teams: Record<string, string> = { ada: "weavers" };

export const auth = new Auth()
  .authenticate((request: Request) => {
    const identity = (request.headers.get("authorization") ?? "").replace("Bearer ", "");
    return { identity, permissions: [], team: teams[identity] };
  })
  .on("threads:create", ({ value, user }: any) => {
    value.metadata = { ...value.metadata, team: user.team };
  })
  .on("threads:read", ({ user }: any) => ({ team: teams[user.identity] }))
  .on("threads:search", ({ user }: any) => ({ $or: [{ team: { $eq: "nobody" } }, { team: teams[user.identity] }] }) as any);
"""


@pytest.fixture(scope="module")
def server(guarded_module):
    return guarded_module("js", {"compartments": "shared"}, files={"auth.mts": AUTH})


def ask(server, who: str, method: str, path: str, **options) -> httpx.Response:
    return httpx.request(method, server.url + path, headers={"authorization": f"Bearer {who}"}, timeout=120, **options)


def test_undefined_filter_members_hide_everything(server):
    thread = ask(server, "ada", "POST", "/threads", json={}).json()["thread_id"]
    assert ask(server, "ada", "GET", f"/threads/{thread}").json()["metadata"]["team"] == "weavers"
    assert [t["thread_id"] for t in ask(server, "ada", "POST", "/threads/search", json={}).json()] == [thread]
    assert ask(server, "eve", "GET", f"/threads/{thread}").status_code == 500
    assert ask(server, "eve", "POST", "/threads/search", json={}).status_code == 500
