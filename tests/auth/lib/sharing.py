"""Users who share threads, and requests that stay open while something changes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import server as api_server
from programs import wait_for

GRAPHS = {name: Path(api_server.GRAPHS) / f"{name}.json" for name in ("echo", "nap")}
HOUR_MS = 3_600_000


class Person:
    """A user with a credential of a server; checks the status of each response."""

    def __init__(self, server, token: str | None = None, headers: dict | None = None):
        self.http: httpx.Client = server.client(token, headers=headers)

    def ask(self, method: str, path: str, status: int = 200, **options):
        answer = self.http.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    def thread(self, **body) -> str:
        return self.ask("POST", "/threads", json=body)["thread_id"]

    def share(self, thread: str, role: str, status: int = 200, issuer: str = "main", **whom):
        return self.ask(
            "POST", f"/threads/{thread}/participants", status, json={"issuer": issuer, "role": role, **whom}
        )

    def invite(self, thread: str, status: int = 200, **body):
        return self.ask("POST", f"/threads/{thread}/invitations", status, json=body)

    def accept(self, token: str, status: int = 200):
        return self.ask("POST", "/invitations/accept", status, json={"token": token})

    def participants(self, thread: str) -> list[dict]:
        return self.ask("GET", f"/threads/{thread}/participants")

    def found(self, **body) -> list[dict]:
        return self.ask("POST", "/threads/search", json={"limit": 1000, **body})

    def nap(self, thread: str) -> str:
        """Starts a run that lasts until it is cancelled."""
        body = {"assistant_id": "nap", "input": {"ms": HOUR_MS}}
        run = self.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
        wait_for(lambda: self.status(thread, run) == "running", what="a run that naps")
        return run

    def status(self, thread: str, run: str) -> str:
        return self.ask("GET", f"/threads/{thread}/runs/{run}")["status"]

    def wake(self, thread: str, run: str) -> None:
        self.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})


def settings(server) -> list[str]:
    """Returns the arguments with which commands work on the server's database."""
    return ["--config", str(server.config_file), "--store", server.store]


def machine(server, subject: str) -> tuple[str, Person]:
    """Creates an API key; returns its id and a Person who uses it."""
    key = server.tool("key", "create", "--subject", subject, *settings(server)).stdout.strip()
    return key[len("hdk_") :][:16], Person(server, headers={"x-api-key": key})


@contextmanager
def crowd(server, *names: str):
    """Creates a Person for each name: {name: Person}; "name@org" is a member of the organisation."""
    made = {}
    try:
        for name in names:
            subject, _, organisation = name.partition("@")
            token = server.main.member(subject, organisation) if organisation else server.user(subject)
            made[subject] = Person(server, token)
        yield made
    finally:
        for person in made.values():
            person.http.close()


class Open:
    """A long request in a thread: `status`, `text` so far, `is_over`."""

    def __init__(self, person: Person, method: str, path: str, **options):
        self.status: int | None = None
        self.text = ""
        self.is_over = False
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self.work, args=(person, method, path, options), daemon=True)
        self.thread.start()

    def work(self, person: Person, method: str, path: str, options: dict) -> None:
        try:
            with httpx.Client(base_url=person.http.base_url, headers=person.http.headers, timeout=300) as http:
                with http.stream(method, path, **options) as answer:
                    self.status = answer.status_code
                    for piece in answer.iter_text():
                        self.text += piece
        except (httpx.RemoteProtocolError, httpx.ReadError):
            pass  # the stream was cut off
        except Exception as failure:  # the test checks it
            self.failure = failure
        self.is_over = True

    def wait_open(self, text: str = "") -> Open:
        wait_for(lambda: (self.status == 200 and text in self.text) or self.is_over, what="an open answer")
        assert not self.is_over and not self.failure, (self.status, self.text, self.failure)
        return self

    def wait_end(self) -> Open:
        wait_for(lambda: self.is_over, what="the end of an open answer")
        assert not self.failure, self.failure
        return self
