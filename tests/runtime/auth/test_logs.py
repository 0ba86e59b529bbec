"""Credentials do not reach the log, even when the authentication code fails."""

import httpx
from programs import wait_for

AUTH = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str, headers: dict) -> dict:
    raise ValueError(f"cannot read {authorization}, {headers[b'cookie'].decode().split('=')[1]}")
"""


def test_credentials_are_not_in_the_log(guarded):
    server = guarded("python", files={"auth.py": AUTH})
    headers = {"authorization": "Bearer hush-authorization", "cookie": "session=hush-cookie"}
    answer = httpx.post(f"{server.url}/threads", json={}, headers=headers, timeout=120)
    assert answer.status_code == 500 and "hush-" not in answer.text
    wait_for(lambda: "ValueError: cannot read" in server.log.read_text(), what="the log")
    assert "hush-" not in server.log.read_text()  # a temporary folder's name has no dash
