"""Checks for tables of requests: every refusal is JSON with a sentence, for any request."""

from __future__ import annotations

import json
import socket

import httpx

NOT_JSON = (b"{", b"[1", b'{"a":}', b"\xff\xfe{}", b"nul", b'{"a":1}x', b"[" * 600, b'{"a":' * 600)


def refused(http: httpx.Client, method: str, path: str, status: int, text: str = "", **options) -> str:
    """The request is refused with that status and a sentence that contains `text`."""
    answer = http.request(method, path, **options)
    assert answer.status_code == status, f"{method} {path} {options}: {answer.status_code} {answer.text}"
    said = answer.json()
    assert set(said) == {"detail"} and isinstance(said["detail"], str) and said["detail"], said
    assert text in said["detail"], said
    return said["detail"]


def refuses_what_is_not_json(http: httpx.Client, method: str, path: str, needs_body: bool = True) -> None:
    for content in NOT_JSON:
        refused(http, method, path, 422, content=content)
    for other in ("[]", '"text"', "1", "true"):
        refused(http, method, path, 422, content=other)
    if needs_body:
        refused(http, method, path, 422, "body", content=b"")
        refused(http, method, path, 422, "body", content=b"null")


def refuses_too_much(http: httpx.Client, method: str, path: str) -> None:
    """A body whose announced length is too large is refused before it is sent."""
    url = httpx.URL(http.base_url)
    with socket.create_connection((url.host, url.port), timeout=60) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n"
        connection.sendall(head.encode())
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.rstrip().endswith(b"}"):
            part = connection.recv(65536)
            if not part:
                break
            answer += part
    line, _, rest = answer.partition(b"\r\n")
    assert b" 413 " in line, line
    assert json.loads(rest.partition(b"\r\n\r\n")[2])["detail"]
