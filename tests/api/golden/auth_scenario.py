"""A short scenario on a server with authentication: refused credentials, and sharing of threads."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import time

import httpx
from golden import Recorder
from programs import Heddle, binary
from scenario import NOWHERE, fixed

SHARED, PRIVATE = fixed(31), fixed(32)
ISSUER = "https://main.test/auth/v1"
SECRET = "a secret of the tests that is long enough for HS256"
PRINCIPAL_KEY = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef"
CONFIG = {
    "auth": {
        "key": {"id": "2026", "env": "TEST_PRINCIPAL_KEY"},
        "issuers": [
            {
                "alias": "main",
                "issuer": ISSUER,
                "audience": "golden",
                "algorithms": ["HS256"],
                "admin": {"claim": "role", "value": "admin"},
                "secret": {"env": "TEST_SECRET"},
            }
        ],
        "api_keys": True,
    }
}
ENVIRONMENT = {"TEST_PRINCIPAL_KEY": PRINCIPAL_KEY, "TEST_SECRET": SECRET}


def encode64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(subject: str, seconds: int = 3600, **claims) -> str:
    claims = {
        "iss": ISSUER,
        "aud": "golden",
        "sub": subject,
        "exp": int(time.time()) + seconds,
        **claims,
    }
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    signed = ".".join(encode64(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{encode64(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest())}"


class AuthScenario(Recorder):
    def __init__(self, http: httpx.Client, names, server: Heddle):
        super().__init__(http, names)
        self.server = server
        self.tokens = {name: token(name) for name in ("alice", "bob", "carol")}
        self.tokens["root"] = token("root", role="admin")
        self.tokens["expired"] = token("alice", seconds=-3600)
        self.tokens["forged"] = self.tokens["alice"][:-6] + "AAAAAA"

    def tell(self, who: str, method: str, path: str, **options) -> httpx.Response:
        headers = self.as_user(who) if who else {}
        return self.call("auth", method, path, note=f"as {who or 'nobody'}", headers=headers, **options)

    def as_user(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    def play(self) -> None:
        for part in (
            self.refusals,
            self.own,
            self.compartments,
            self.shared,
            self.api_key,
            self.search,
        ):
            part()

    def tool(self, *arguments: str) -> str:
        """Returns the output of a command that works on the server's database."""
        options = [
            "--store",
            self.server.store,
            "--config",
            str(self.server.folder / "config.json"),
        ]
        done = subprocess.run(
            [str(binary()), *arguments, *options],
            env=self.server.environment(),
            text=True,
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refusals(self) -> None:
        for who in ("", "expired", "forged"):
            self.tell(who, "GET", "/threads/{thread_id}", ids=[NOWHERE])
        self.tell("", "POST", "/threads", body={})
        self.tell("", "GET", "/threads/{thread_id}/stream", ids=[NOWHERE])
        for path in ("/ok", "/info", "/page/settings", "/nothing"):
            self.tell("", "GET", path)
        self.tell("alice", "GET", "/metrics")
        answer = self.http.get("/metrics", headers=self.as_user("root"))
        assert answer.status_code == 200, answer.text

    def own(self) -> None:
        for who, thread in (("alice", SHARED), ("bob", PRIVATE)):
            self.tell(
                who,
                "POST",
                "/threads",
                body={"thread_id": thread, "metadata": {"title": f"of {who}"}},
            )
        body = {
            "assistant_id": "settings",
            "input": {"seen": ["a long entry " * 20]},
            "metadata": {"by": "alice"},
        }
        self.tell("alice", "POST", "/threads/{thread_id}/runs/wait", ids=[SHARED], body=body)
        self.tell(
            "alice",
            "POST",
            "/assistants",
            body={"assistant_id": fixed(33), "graph_id": "settings", "name": "alice's"},
        )
        self.tell(
            "alice",
            "PUT",
            "/store/items",
            body={"namespace": ["notes"], "key": "a", "value": {"n": 1}},
        )
        self.tell("alice", "POST", "/runs/crons", body={**body, "schedule": "0 0 1 1 *"})

    def compartments(self) -> None:
        """The resources of another user look nonexistent."""
        self.tell("bob", "GET", "/threads/{thread_id}", ids=[SHARED])
        self.tell("bob", "GET", "/assistants/{assistant_id}", ids=[fixed(33)])
        self.tell("bob", "GET", "/store/items", params={"namespace": "notes", "key": "a"})
        self.tell("bob", "POST", "/runs/crons/count", body={})
        self.tell("bob", "POST", "/threads/search", body={})
        self.tell("bob", "DELETE", "/threads/{thread_id}", ids=[SHARED])

    def shared(self) -> None:
        people, one = (
            "/threads/{thread_id}/participants",
            "/threads/{thread_id}/participants/{participant_id}",
        )
        body = {"issuer": "main", "subject": "bob", "role": "viewer"}
        bob = self.tell("alice", "POST", people, ids=[SHARED], body=body).json()["participant_id"]
        self.tell("alice", "POST", people, ids=[SHARED], body={**body, "role": "nowhere"})
        self.tell("bob", "GET", people, ids=[SHARED])
        self.tell("bob", "GET", "/threads/{thread_id}", ids=[SHARED])
        self.tell("bob", "PATCH", "/threads/{thread_id}", ids=[SHARED], body={"metadata": {"by": "bob"}})
        self.tell("alice", "PATCH", one, ids=[SHARED, bob], body={"role": "editor"})
        self.tell("bob", "PATCH", "/threads/{thread_id}", ids=[SHARED], body={"metadata": {"by": "bob"}})
        self.tell("bob", "DELETE", "/threads/{thread_id}", ids=[SHARED])
        self.tell("bob", "POST", "/threads/{thread_id}/invitations", ids=[SHARED], body={"role": "viewer"})
        invitations = "/threads/{thread_id}/invitations"
        self.invite({"role": "editor", "expires_in": 3600, "uses": 2}, accept=True)
        self.tell("alice", "GET", invitations, ids=[SHARED])
        gone = self.invite({"role": "viewer"}, accept=False)
        self.tell("alice", "DELETE", invitations + "/{invitation_id}", ids=[SHARED, gone])
        self.tell("alice", "DELETE", invitations + "/{invitation_id}", ids=[SHARED, NOWHERE])
        self.tell("bob", "POST", "/invitations/accept", body={"token": "x" * 43})
        self.tell("alice", "DELETE", one, ids=[SHARED, "A" * 22])
        self.tell("bob", "DELETE", one, ids=[SHARED, bob])
        self.tell("bob", "GET", "/threads/{thread_id}", ids=[SHARED])
        again = self.tell("alice", "POST", people, ids=[SHARED], body=body)
        assert again.status_code == 200, again.text

    def invite(self, body: dict, accept: bool) -> str:
        """The token is secret, so it gets its name before the response is recorded."""
        path = "/threads/{thread_id}/invitations"
        self.called.add(("POST", path))
        answer = self.http.post(path.format(thread_id=SHARED), json=body, headers=self.as_user("alice"))
        assert answer.status_code == 200, answer.text
        made = answer.json()
        self.names.give(made["token"], "secret")
        self.keep(
            "auth",
            f"POST /threads/{SHARED}/invitations",
            "as alice",
            body,
            {},
            200,
            answer.headers,
            made,
        )
        if accept:
            self.tell("carol", "POST", "/invitations/accept", body={"token": made["token"]})
        return made["invitation_id"]

    def api_key(self) -> None:
        printed = self.tool("key", "create", "--subject", "robot", "--expires", "30")
        key = next(word for word in printed.split() if word.startswith("hdk_"))
        self.tokens["robot"] = key
        self.names.give(key, "secret")
        self.names.give(key.removeprefix("hdk_").split("_")[0], "secret")
        self.tell("robot", "POST", "/threads/search", body={})
        self.tokens["wrong key"] = key[:-4] + "AAAA"
        self.tell("wrong key", "POST", "/threads/search", body={})

    def search(self) -> None:
        """A search first updates the text index, which otherwise lags a moment behind."""
        for who in ("alice", "bob"):
            self.tell(
                who,
                "POST",
                "/threads/search",
                body={"text": "of", "select": ["thread_id", "metadata"]},
            )
