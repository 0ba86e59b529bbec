"""Recognizable secrets, and a search for them in all their forms.

Every secret of these tests contains MARK. WITNESS is not secret and takes the same paths: if it is
not found, the search looked in the wrong place.
"""

from __future__ import annotations

import base64

MARK = "zqxjKv7Wd"
WITNESS = "witness-that-must-be-found"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{MARK}signature0123456789"


def secret(name: str) -> str:
    return f"{MARK}-{name}"


def base64_of(text: bytes) -> list[bytes]:
    """Returns the part that every base64 encoding of data with `text` contains, for each of the
    three offsets."""
    found = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text)
        first = (before * 8 + 5) // 6
        last = (before + len(text)) * 8 // 6
        found.append(encoded[first:last])
    return found


def forms(text: str = MARK) -> dict[str, bytes]:
    data = text.encode()
    found = {"plain": data, "hexadecimal": data.hex().encode(), "percent": "".join(f"%{c:02X}" for c in data).encode()}
    for number, encoded in enumerate(base64_of(data)):
        found[f"base64 ({number})"] = encoded
    return found


def find(data: bytes | str, *more: str) -> str | None:
    """Returns the first secret in the data with its surroundings, or None. `more` are further
    secrets."""
    assert all(len(text) >= 16 for text in more), "a short text is found by chance"
    data = data.encode() if isinstance(data, str) else data
    searched = forms() | {f"number {n}": text.encode() for n, text in enumerate(more)}
    for form, encoded in searched.items():
        at = data.find(encoded)
        if at >= 0:
            return f"{form} in {data[max(0, at - 300) : at + 100]!r}"
    return None


def must_be_clean(where: str, data: bytes | str, *more: str, has_witness: bool = True) -> None:
    data = data.encode() if isinstance(data, str) else data
    if has_witness:
        assert WITNESS.encode() in data, f"{where}: nothing that was looked for would be found there"
    found = find(data, *more)
    assert not found, f"{where}: {found}"


# ---- places for secrets ------------------------------------------------------

# In addition to Authorization, which has the token. The server ignores all of them.
HEADERS = {
    "Cookie": f"session={secret('cookie')}; sb-access-token={JWT}",
    "Proxy-Authorization": f"Basic {base64.b64encode(secret('proxy').encode()).decode()}",
    "X-Access-Token": secret("x-access-token"),
    "X-Amz-Security-Token": secret("x-amz"),
    "X-Auth-Request-Access-Token": JWT,
    "X-Auth-Request-User": secret("x-auth-user"),
    "X-Canary": secret("x-canary"),
    "X-Client-Data": secret("x-client-data"),
    "X-CSRF-Token": secret("x-csrf"),
    "X-Forwarded-Access-Token": JWT,
    "X-Goog-Api-Key": secret("x-goog"),
    "X-Ms-Token-Aad-Access-Token": JWT,
    "X-Session-Id": secret("x-session"),
    "X-Supabase-Access-Token": secret("supabase"),
    "X-User-Tier": f"Bearer {secret('by-shape')}",
    "Forwarded": f"for={secret('forwarded')}",
    "Referer": f"https://pages.test/?code={secret('referer')}",
    "If-None-Match": secret("etag"),
}
QUERY = {"api_key": secret("query-key"), "access_token": JWT, "code": secret("query-code")}
CONFIGURABLE = {
    "custom_api_key": secret("custom"),
    "apiKeys": {"OPENAI_API_KEY": secret("openai"), "ANTHROPIC_API_KEY": secret("anthropic")},
    "mcp_config": {
        "servers": [
            {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {secret('mcp')}"}, "name": WITNESS},
            {"url": f"http://user:{secret('mcp-url')}@127.0.0.1:9/mcp"},
            {"url": f"http://127.0.0.1:9/mcp?api_key={secret('mcp-query')}"},
        ]
    },
    "a2a": {"agents": [{"url": "http://127.0.0.1:9/", "headers": {"X-Api-Key": secret("a2a")}}]},
    "tools": [
        {"name": "t", "url": "http://127.0.0.1:9/", "auth": {"bearer": secret("tool"), "password": secret("tool-pw")}}
    ],
    "langgraph_auth_user": {"identity": "forged", "token": secret("identity")},
    "langgraph_auth_user_id": "forged",
    "x-supabase-access-token": secret("configured"),
    "clientSecret": secret("client"),
    "refresh_token": secret("refresh"),
    "database_url": f"postgresql://user:{secret('database')}@127.0.0.1/db",
    "note": f"Bearer {secret('by-shape-0123')}",
    "jwt_by_shape": JWT,
    "list": [JWT, {"deep": [f"sk-proj-{MARK}0123456789abcdef"]}],
    "plain": WITNESS,
    "max_tokens": 5,
}


def run_body(assistant: str, **more) -> dict:
    """Returns a run with a secret in every place that can carry one."""
    return {
        "assistant_id": assistant,
        "config": {
            "configurable": CONFIGURABLE,
            "metadata": {"api_key": secret("in-config-metadata"), "trace": WITNESS},
            "callback_token": secret("beside"),
            "tags": [WITNESS],
        },
        "metadata": {"session": {"password": secret("in-run-metadata")}, "trace": WITNESS},
        "context": {"token": secret("in-context"), "nested": {"secrets": [secret("in-a-list")]}, "who": WITNESS},
        "stream_resumable": True,
        **more,
    }  # fmt: skip
