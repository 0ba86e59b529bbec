"""Graphs see only the headers that the configuration names, and no secret."""

from __future__ import annotations

import pytest
from canaries import find, secret

SHOW = {
    "name": "show",
    "state": {"seen": {}},
    "nodes": {"tell": {"kind": "set", "update": {"seen": "{{config}}"}}},
    "edges": [["__start__", "tell"], ["tell", "__end__"]],
}
SENT = {
    "X-Org-Id": "org-1", "X-User-Tier": "gold", "X-Supabase-Access-Token": secret("supabase"), "X-App-Tenant": "t-1",
    "X-App-Token": secret("token"), "X-App-Api-Key": secret("key"), "X-App": "short", "X-Other": "other", "User-Agent": "tests/1",
    "Cookie": f"a={secret('cookie')}",
}  # fmt: skip
USUAL = {"x-org-id": "org-1", "x-user-tier": "gold", "user-agent": "tests/1"}
HIDDEN = {"x-supabase-access-token": "heddle:secret:x-supabase-access-token"}


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, USUAL | HIDDEN),
        (["X-App-*"], {"x-app-tenant": "t-1"}),
        (["x-other", "X-ORG-ID"], {"x-other": "other", "x-org-id": "org-1"}),
        (["x-app-token", "cookie", "authorization"], {}),
        (["*"], None),
        ([], {}),
    ],
)
def test_graphs_see_the_configured_headers(secured, named, expected):
    config = {} if named is None else {"headers": {"to_graphs": named}}
    server = secured(graphs={"show": SHOW}, config=config)
    with server.client(server.user("alice"), headers=SENT) as http:
        answer = http.post("/runs/wait", json={"assistant_id": "show", "input": {"seen": None}})
    assert answer.status_code == 200, answer.text
    seen = answer.json()["seen"]
    headers = {
        name: value
        for name, value in seen.items()
        if name.startswith("x-") or name in ("user-agent", "cookie", "authorization")
    }
    if expected is None:
        assert "x-app-token" not in headers and "cookie" not in headers and "authorization" not in headers
        assert headers["x-other"] == "other" and headers["x-app"] == "short"
    else:
        assert headers == expected
    assert not find(answer.text)
