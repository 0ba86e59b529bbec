"""`heddle serve` with users.

server = Secured().start()                       # SQLite; issuer `main` (HS256), its own key
server = Secured(store="postgres", issuers=[{…}], config={"limits": {…}}).start()
server.ask("GET", "/threads/…", token=server.user("alice"))
with server.as_user("alice") as http: http.post("/threads", json={})
"""

from __future__ import annotations

import os
import ssl
import subprocess
import uuid

import httpx
from programs import Heddle, binary
from tokens import Issuer

PRINCIPAL_KEY = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef"
STORES = ("sqlite", "postgres")
TLS = ssl.create_default_context()  # creating one takes longer than a request
METHODS = ("get", "post", "put", "patch", "delete")


def store_url(store: str, folder) -> str:
    """A new database in `folder`, or a new schema of the tests' PostgreSQL server."""
    if store == "sqlite":
        return f"sqlite:{folder}/heddle.db"
    return f"{os.environ['HEDDLE_TEST_PG_URL']}?schema=auth_{uuid.uuid4().hex[:16]}"


class Secured(Heddle):
    """store: "sqlite" or "postgres". auth: members of `auth` beside key and issuers.

    issuers: entries of the configuration, or Issuer; env holds their secrets. Otherwise as Heddle.
    """

    def __init__(self, store="sqlite", issuers=None, auth=None, config=None, env=None, **options):
        self.main = Issuer("main")
        issuers = [self.main] if issuers is None else issuers
        secrets = {"TEST_PRINCIPAL_KEY": PRINCIPAL_KEY}
        entries = []
        for each in issuers:
            entries.append(each.config() if isinstance(each, Issuer) else each)
            secrets |= each.environment() if isinstance(each, Issuer) else {}
        section = {"key": {"id": "2026", "env": "TEST_PRINCIPAL_KEY"}, "issuers": entries, "api_keys": True}
        super().__init__(
            config={"auth": section | (auth or {}), **(config or {})}, env=secrets | (env or {}), **options
        )
        self.config_file = self.folder / "config.json"
        self.store = store_url(store, self.folder)

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--store") + 1] = self.store
        return command

    # ---- users --------------------------------------------------------

    def user(self, subject: str, **claims) -> str:
        """A token of the issuer `main`."""
        return self.main.token(subject, **claims)

    def client(self, token: str | None = None, **options) -> httpx.Client:
        headers = dict(options.pop("headers", None) or {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return super().client(headers=headers, **{"verify": TLS, **options})

    def as_user(self, subject: str, **claims) -> httpx.Client:
        return self.client(self.user(subject, **claims))

    def as_admin(self, subject: str = "root") -> httpx.Client:
        return self.client(self.main.admin(subject))

    def ask(self, method: str, path: str, status: int = 200, token: str | None = None, **options):
        with self.client(token) as client:
            answer = client.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    # ---- inspection ---------------------------------------------------

    def operations(self) -> dict[tuple[str, str], dict]:
        """{("GET", "/threads/{thread_id}"): operation}: all operations of the router."""
        document = self.ask("GET", "/openapi.json")
        return {
            (method.upper(), path): operation
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method in METHODS
        }

    def metrics(self) -> dict:
        return self.ask("GET", "/metrics", token=self.main.admin("root"), params={"format": "json"})

    def tool(self, *arguments: str, status: int | None = 0, input: str | None = None) -> subprocess.CompletedProcess:
        """Runs `heddle ARGUMENT…` with the server's environment; returns its output as text."""
        done = subprocess.run(
            [str(binary()), *arguments], env=self.environment(), cwd=self.folder, input=input, text=True,
            capture_output=True, timeout=300,
        )  # fmt: skip
        assert status is None or done.returncode == status, (
            f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done
