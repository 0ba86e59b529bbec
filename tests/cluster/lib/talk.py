"""One thread, used through any server."""

from __future__ import annotations

import httpx
from cluster import Cluster, Member
from load import eventually
from plain import texts


class Talk:
    """Requests about one thread; the first argument is the server that gets the request."""

    def __init__(self, cluster: Cluster, through: Member, **body):
        self.cluster = cluster
        self.id = through.thread(**body)

    def path(self, rest: str = "") -> str:
        return f"/threads/{self.id}{rest}"

    def ask(self, through: Member, method: str, rest: str = "", status: int = 200, **options):
        return through.ask(method, self.path(rest), status, **options)

    def start(self, through: Member, assistant: str, status: int = 200, **body) -> str:
        body = {"assistant_id": assistant, "stream_resumable": True, **body}
        return self.ask(through, "POST", "/runs", status, json=body).get("run_id")

    def wait(self, through: Member, assistant: str, **body) -> dict:
        return self.ask(through, "POST", "/runs/wait", json={"assistant_id": assistant, **body})

    def join(self, through: Member, run: str) -> dict:
        """Comes back while the holder cannot be reached."""
        with through.client() as http:

            def answer() -> httpx.Response | None:
                found = http.get(self.path(f"/runs/{run}/join"))
                return None if found.status_code == 503 else found

            found = eventually(answer)
        assert found.status_code == 200, found.text
        return found.json()

    def run(self, through: Member, run: str) -> dict:
        return self.ask(through, "GET", f"/runs/{run}")

    def runs(self, through: Member) -> list[dict]:
        """Oldest first."""
        return self.ask(through, "GET", "/runs", params={"limit": 1000})[::-1]

    def record(self, through: Member) -> dict:
        return self.ask(through, "GET")

    def state(self, through: Member, **params) -> dict:
        return self.ask(through, "GET", "/state", params=params)

    def said(self, through: Member, **params) -> list[str]:
        return texts(self.state(through, **params)["values"])

    def holder(self) -> Member | None:
        return self.cluster.holder(self.id)

    def is_held(self) -> Member:
        """Waits until a server holds the thread."""
        return eventually(self.holder)

    def is_free(self) -> None:
        """Waits until no server holds the thread."""
        eventually(lambda: self.cluster.sql(f"SELECT token FROM holds WHERE thread_id = '{self.id}'") in ("", "0"))
