"""Requests of web pages: with authentication only from listed origins, otherwise also from loopback
origins."""

from __future__ import annotations

import base64
import hashlib
import re

import httpx
import pytest
from programs import Heddle, collect

PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
PRIVATE = {"Access-Control-Request-Private-Network": "true"}


@pytest.fixture(scope="module")
def server(secured_module):
    return secured_module()


@pytest.fixture(scope="module")
def alone():
    """A server without authentication."""
    yield from (create() for create in collect(Heddle))


def allowed(answer: httpx.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith("access-control")]


def test_other_origins_are_kept_out_once_there_are_users(server):
    token = {"Authorization": f"Bearer {server.user('alice')}"}
    for origin in ("https://evil.example", "null", "http://localhost:3000", server.url.replace("http", "https") + "0"):
        page = {"Origin": origin}
        for extra in ({}, PRIVATE):
            answer = httpx.options(server.url + "/threads", headers=page | PREFLIGHT | extra, timeout=60)
            assert (answer.status_code, allowed(answer)) == (403, [])
        assert allowed(httpx.get(server.url + "/info", headers=page, timeout=60)) == []
        assert allowed(httpx.post(server.url + "/threads/search", headers=page | token, json={}, timeout=60)) == []


def test_requests_without_a_preflight_change_nothing(server):
    token = {"Authorization": f"Bearer {server.user('bob')}"}
    body = '{"thread_id": "11111111-2222-4333-8444-555555555555"}'
    for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded"):
        headers = token | {"Origin": "https://evil.example", "Content-Type": kind}
        answer = httpx.post(server.url + "/threads", headers=headers, content=body, timeout=60)
        assert answer.status_code == 403 and "cors.allow_origins" in answer.text
    with server.as_user("bob") as http:
        assert http.post("/threads/search", json={}).json() == []
        # The server's own page is allowed.
        own = {"Origin": server.url, "Content-Type": "application/json"}
        assert http.post("/threads", headers=own, content=body).status_code == 200


def test_origins_that_are_listed_may(secured):
    good = "https://app.example"
    server = secured(config={"cors": {"allow_origins": [good]}})
    answer = httpx.options(server.url + "/threads", headers={"Origin": good} | PREFLIGHT, timeout=60)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, good)
    assert answer.headers["vary"] == "origin"
    token = {"Authorization": f"Bearer {server.user('alice')}"}
    answer = httpx.post(server.url + "/threads", headers={"Origin": good} | token, json={}, timeout=60)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, good)
    answer = httpx.options(server.url + "/threads", headers={"Origin": "https://evil.example"} | PREFLIGHT, timeout=60)
    assert (answer.status_code, allowed(answer)) == (403, [])


def test_refusals_can_be_read_by_pages_that_may(secured):
    """A 401 without CORS headers would look like a network failure to the page."""
    server = secured(config={"cors": {"allow_origins": ["https://app.example"]}})
    answer = httpx.post(server.url + "/threads", headers={"Origin": "https://app.example"}, json={}, timeout=60)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (401, "https://app.example")


def test_without_users_pages_of_development_servers_may(alone):
    for origin in ("http://localhost:3000", "http://127.0.0.1:5173", "https://app.localhost"):
        answer = httpx.options(alone.url + "/threads", headers={"Origin": origin} | PREFLIGHT, timeout=60)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, origin)
        answer = httpx.post(alone.url + "/threads", headers={"Origin": origin}, json={}, timeout=60)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)


def test_without_users_pages_of_other_origins_change_and_read_nothing(alone):
    body = '{"assistant_id": "demo", "input": {"messages": [{"role": "user", "content": "hello"}]}}'
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        page = {"Origin": origin}
        for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded"):
            answer = httpx.post(
                alone.url + "/runs/wait", headers=page | {"Content-Type": kind}, content=body, timeout=60
            )
            assert (answer.status_code, allowed(answer)) == (403, []) and "cors.allow_origins" in answer.text
        assert httpx.options(alone.url + "/runs/wait", headers=page | PREFLIGHT, timeout=60).status_code == 403
        assert allowed(httpx.get(alone.url + "/info", headers=page, timeout=60)) == []
    answer = httpx.post(alone.url + "/runs/wait", headers={"Sec-Fetch-Site": "cross-site"}, content=body, timeout=60)
    assert answer.status_code == 403


def test_without_users_pages_send_json_as_json(alone):
    body = b'{"metadata": {}}'
    for kind in (
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "",
    ):
        for page in ({"Origin": "http://localhost:3000"}, {"Origin": alone.url}, {"Sec-Fetch-Site": "same-origin"}):
            answer = httpx.post(alone.url + "/threads", headers=page | {"Content-Type": kind}, content=body, timeout=60)
            assert answer.status_code == 415 and "application/json" in answer.text
    for kind in ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"):
        headers = {"Origin": "http://localhost:3000", "Content-Type": kind}
        assert httpx.post(alone.url + "/threads", headers=headers, content=body, timeout=60).status_code == 200
    # Programs other than browsers may send any type; fetch() of Node is one of them.
    for headers in ({}, {"Content-Type": "text/plain"}, {"Sec-Fetch-Mode": "cors", "Content-Type": "text/plain"}):
        assert httpx.post(alone.url + "/threads", headers=headers, content=body, timeout=60).status_code == 200


def test_without_users_listed_origins_may_besides_loopback():
    for create in collect(Heddle):
        server = create(config={"cors": {"allow_origins": ["https://app.example"]}})
        for origin, status in (
            ("https://app.example", 200),
            ("http://localhost:3000", 200),
            ("https://evil.example", 403),
        ):
            answer = httpx.post(server.url + "/threads", headers={"Origin": origin}, json={}, timeout=60)
            assert answer.status_code == status


def test_without_users_borrowed_names_are_refused(alone):
    """DNS rebinding: the page's own host name resolves to this machine."""
    for host in ("evil.example", "evil.example:2024", "10.0.0.1", "127.0.0.1.evil.example"):
        for method, path in (("GET", "/info"), ("POST", "/threads"), ("GET", "/docs")):
            answer = httpx.request(
                method, alone.url + path, headers={"Host": host, "Origin": f"http://{host}"}, timeout=60
            )
            assert answer.status_code == 421 and "allowed_hosts" in answer.text
    for host in ("localhost", "127.0.0.1:1", "[::1]:2024", "app.localhost"):
        assert httpx.get(alone.url + "/info", headers={"Host": host}, timeout=60).status_code == 200


def test_names_that_are_listed_are_known():
    for create in collect(Heddle):
        server = create(config={"allowed_hosts": ["agents.example"]})
        assert httpx.get(server.url + "/info", headers={"Host": "agents.example"}, timeout=60).status_code == 200
        assert httpx.get(server.url + "/info", headers={"Host": "others.example"}, timeout=60).status_code == 421


def test_with_users_any_name_will_do(server):
    assert httpx.get(server.url + "/info", headers={"Host": "agents.example"}, timeout=60).status_code == 200


def test_headers_keep_browsers_careful(server):
    with server.as_user("alice") as http:
        for path in ("/info", "/threads/11111111-2222-4333-8444-000000000000", "/none", "/openapi.json"):
            answer = http.get(path)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "strict-transport-security" not in answer.headers
        stream = http.post("/runs/stream", json={"assistant_id": "demo", "input": {}})
        assert stream.headers.get_list("cache-control") == ["no-store"]


def test_the_page_runs_only_its_own_scripts(server):
    answer = httpx.get(server.url + "/docs", timeout=60)
    policy = answer.headers["content-security-policy"]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    for part in ("default-src 'none'", "frame-ancestors 'none'", "connect-src 'self'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy and " style=" not in answer.text and not re.search(r"<[^>]+ on\w+=", answer.text)
    assert answer.headers["referrer-policy"] == "no-referrer" and answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_large_heads_are_refused(server):
    for name in ("Authorization", "X-Api-Key", "Cookie", "X-Anything"):
        answer = httpx.get(server.url + "/threads/x", headers={name: "Bearer " + "a" * 70_000}, timeout=60)
        assert answer.status_code == 431
    answer = httpx.post(
        server.url + "/threads", headers={"Authorization": "Bearer " + "a" * 20_000}, json={}, timeout=60
    )
    assert answer.status_code == 401
