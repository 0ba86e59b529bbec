"""The official client for each user, and a graph that returns its user.

with Team(server) as team: team["alice"].threads.create(); team.ask("alice", "GET", …)
"""

from __future__ import annotations

import sqlite3
import uuid

import httpx
import pytest
import server as api_server
from langgraph_sdk import get_sync_client

YEARLY = "0 0 1 1 *"
WHO = {
    "name": "who",
    "state": {"seen": {"reducer": "add", "type": "list"}},
    "nodes": {
        "tell": {
            "kind": "set",
            "update": {
                "seen": [
                    {
                        "user": "{{config.langgraph_auth_user}}",
                        "id": "{{config.langgraph_auth_user_id}}",
                        "permissions": "{{config.langgraph_auth_permissions}}",
                        "more": "{{config.langgraph_auth_more}}",
                    }
                ]
            },
        }
    },
    "edges": [["__start__", "tell"], ["tell", "__end__"]],
}
GRAPHS = {"who": WHO, **{name: api_server.GRAPHS / f"{name}.json" for name in ("echo", "nap")}}


class Team:
    """Subjects are new in each team, so tests can share a server without sharing data."""

    def __init__(self, server):
        self.server, self.clients, self.mark = server, {}, uuid.uuid4().hex[:8]

    def subject(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def token(self, name: str) -> str:
        issuer = self.server.main
        return issuer.admin(self.subject(name)) if name == "admin" else issuer.token(self.subject(name))

    def __getitem__(self, name: str):
        if name not in self.clients:
            headers = {"Authorization": f"Bearer {self.token(name)}"}
            self.clients[name] = get_sync_client(url=self.server.url, api_key=None, headers=headers, timeout=120)
        return self.clients[name]

    @property
    def admin(self):
        return self["admin"]

    def ask(self, name: str, method: str, path: str, status: int = 200, **options):
        """Calls an endpoint that the client has no method for."""
        return self.server.ask(method, path, status, token=self.token(name), **options)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_) -> None:
        for client in self.clients.values():
            client.http.client.close()


def refused(status: int, function, *arguments, **options) -> None:
    with pytest.raises(httpx.HTTPStatusError) as caught:  # the base class of some of the client's errors
        function(*arguments, **options)
    assert caught.value.response.status_code == status, function


def fire(server, cron: str) -> None:
    """Makes a cron fire without waiting for a minute: it becomes due while the server is down."""
    server.stop()
    with sqlite3.connect(server.folder / "heddle.db") as database:
        changed = database.execute("UPDATE crons SET next_at = 1 WHERE cron_id = ?", (cron,)).rowcount
    database.close()
    assert changed == 1
    server.restart()
