"""Cached authentication when the identifying header has more than one line."""

import httpx

AUTH = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict) -> dict:
    for part in headers.get(b"cookie", b"").decode().split("; "):
        name, _, value = part.partition("=")
        if name == "session":
            return {"identity": value}
    raise Auth.exceptions.HTTPException(status_code=401, detail="who?")
"""


def test_a_shared_header_line_is_not_a_credential(guarded):
    """Proxies send the cookies of HTTP/2 in a line each: a request with only the first of them is
    not that user's."""
    cache = {"cache_keys": ["cookie"], "ttl_seconds": 3600}
    server = guarded("python", {"cache": cache}, files={"auth.py": AUTH})

    def enter(*cookies: str) -> httpx.Response:
        lines = [("cookie", cookie) for cookie in cookies]
        return httpx.post(f"{server.url}/threads", json={}, headers=lines, timeout=120)

    assert enter("theme=dark", "session=ada").json()["metadata"]["owner"] == "ada"
    assert enter("theme=dark").status_code == 401
    assert enter("theme=dark", "session=bob").json()["metadata"]["owner"] == "bob"
    assert enter("theme=dark; session=eve").json()["metadata"]["owner"] == "eve"


TOKENS = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict) -> dict:
    token = headers.get(b"x-session-token", b"").decode()
    if not token.startswith("good-"):
        raise Auth.exceptions.HTTPException(status_code=401, detail="who?")
    return {"identity": token.removeprefix("good-")}
"""


def test_a_shared_key_is_not_a_credential(guarded):
    """Applications often send one public key together with the identifying header."""
    server = guarded("python", {"cache": {"ttl_seconds": 3600}}, files={"auth.py": TOKENS})

    def enter(token: str) -> httpx.Response:
        headers = {"x-api-key": "public", "x-session-token": token}
        return httpx.post(f"{server.url}/threads", json={}, headers=headers, timeout=120)

    assert enter("good-ada").json()["metadata"]["owner"] == "ada"
    assert enter("good-bob").json()["metadata"]["owner"] == "bob"
    assert enter("bad").status_code == 401
    assert enter("good-ada").json()["metadata"]["owner"] == "ada"
