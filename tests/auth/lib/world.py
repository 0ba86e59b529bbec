"""The things of a user on a server, marked so that every leak of them is recognizable."""

from __future__ import annotations

import json
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import server as api_server
from programs import wait_for
from rows import Row, human

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
PARAMETER = re.compile(r"\{(\w+)\}")
OF_THE_MOMENT = {"date", "x-request-id", "keep-alive", "connection"}
GRAPHS = {name: api_server.GRAPHS / f"{name}.json" for name in ("echo", "nested")}
SYSTEM_ASSISTANT = "echo"  # available to all users


class Things(dict):
    """Maps names to ids, see rows.NAMES; `used` has the names that were read."""

    def __init__(self, *sources, **more):
        super().__init__(*sources, **more)
        self.used: set[str] = set()

    def __getitem__(self, name):
        self.used.add(name)
        return super().__getitem__(name)


def missing(name: str, like: str | None = None):
    """Returns an id that does not exist. Ids of checkpoints are ordered: it is right beside `like`."""
    if name in ("branch_id", "checkpoint_id") and like:
        return like[:-12] + uuid.uuid4().hex[:12]
    if name in ("item", "new_item"):
        return {"namespace": [f"missing{uuid.uuid4().hex}"], "key": uuid.uuid4().hex}
    if name == "invitation_token":
        return uuid.uuid4().hex + uuid.uuid4().hex
    if name == "participant_id":
        return uuid.uuid4().hex[:22]
    return str(uuid.uuid4())


@dataclass
class Answer:
    status: int
    text: str
    headers: dict[str, str]

    def everything(self) -> str:
        return self.text + "\n" + "\n".join(f"{name}: {value}" for name, value in self.headers.items())

    def masked(self, *values) -> tuple:
        """Returns the parts that two responses must share if only ids, which are `values`, and
        times differ."""
        kept = {name: mask(value, *values) for name, value in self.headers.items() if name not in OF_THE_MOMENT}
        if self.status < 300:
            kept.pop("content-length", None)  # times and numbers vary in length
        return self.status, mask(self.text, *values), kept


def mask(text: str, *values) -> str:
    """Replaces ids, those of `values` and everything that looks like one, and times."""
    for value in values:
        for part in value.values() if isinstance(value, dict) else [value]:
            for each in part if isinstance(part, list) else [part]:
                text = text.replace(each, "<id>")
    return TIME.sub("<time>", UUID.sub("<id>", text))


def send(http: httpx.Client, method: str, path: str, row: Row, ids: Things) -> Answer:
    """Sends the row's request with these things."""
    options = {}
    if row.json:
        options["json"] = row.json(ids)
    if row.params:
        options["params"] = row.params(ids)
    path = PARAMETER.sub(lambda found: str(ids[found[1]]), path)
    with http.stream(method, path, **options) as answer:
        is_endless = row.is_endless and answer.status_code == 200
        text = "" if is_endless else answer.read().decode()
        return Answer(answer.status_code, text, dict(answer.headers))


def names_of(method: str, path: str, row: Row, ids: Things) -> set[str]:
    """Returns the names that a row uses."""
    ids = Things(ids)
    if row.json:
        row.json(ids)
    if row.params:
        row.params(ids)
    return ids.used | set(PARAMETER.findall(path))


@dataclass
class Person:
    """A user with a token. `mark` is in everything that this user has written."""

    server: object
    subject: str
    token: str
    mark: str = field(default_factory=lambda: f"mark{uuid.uuid4().hex}")

    def __post_init__(self):
        self.http: httpx.Client = self.server.client(self.token)

    def close(self) -> None:
        self.http.close()

    def ask(self, method: str, path: str, status: int = 200, **options):
        answer = self.http.request(method, path, **options)
        assert answer.status_code == status, f"{self.subject}: {method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    # ---- things -------------------------------------------------------

    def plant(self, makes: str | None = None) -> Things:
        """Creates one of everything."""
        assistant = self.make_assistant()
        thread = self.make_thread()
        said = {"input": human(self.mark), "metadata": {"note": self.mark}, "stream_resumable": True}
        self.ask("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": SYSTEM_ASSISTANT, **said})
        again = {"checkpoint_id": self.ask("GET", f"/threads/{thread}/branches")["branches"][0]["branch_id"], **said}
        self.ask("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": SYSTEM_ASSISTANT, **again})
        branch = self.ask("GET", f"/threads/{thread}/branches")["branches"][1]["branch_id"]
        run = self.ask("GET", f"/threads/{thread}/runs")[0]["run_id"]
        state = self.ask("GET", f"/threads/{thread}/state")
        if makes == "pending":
            later = {"assistant_id": SYSTEM_ASSISTANT, "after_seconds": 3600, **said}
            run = self.ask("POST", f"/threads/{thread}/runs", json=later)["run_id"]
        message = self.ask("POST", f"/threads/{thread}/room/messages", 201, json={"content": self.mark})["message"]
        cascade = self.edit(thread) if makes == "cascade" else missing("cascade_id")
        return Things(
            thread_id=thread, run_id=run, checkpoint_id=state["checkpoint"]["checkpoint_id"], assistant_id=assistant,
            message_id=message["id"], cascade_id=cascade, branch_id=branch,
            cron_id=self.make_cron(assistant), item=self.make_item(), namespace="child",
            **{name: missing(name) for name in ("new_thread_id", "new_assistant_id", "new_item", "invitation_token")},
            **self.share(thread, f"guest of {self.subject}", "viewer"),
        )  # fmt: skip

    def edit(self, thread: str) -> str:
        """Edits a message that an agent has answered; returns the finished cascade."""
        room = f"/threads/{thread}/room"
        body = {"id": "edited", "content": self.mark, "mentions": [SYSTEM_ASSISTANT]}
        self.http.post(f"{room}/messages/stream", json=body).raise_for_status()
        edited = self.ask("PATCH", f"{room}/messages/edited", json={"content": f"{self.mark} again"})
        cascade = f"/threads/{thread}/cascades/{edited['cascade']['cascade_id']}"
        wait_for(lambda: self.ask("GET", cascade)["status"] == "done", what="the end of a cascade")
        return edited["cascade"]["cascade_id"]

    def share(self, thread: str, subject: str, role: str) -> dict[str, str]:
        """Shares with a subject, and creates an invitation."""
        body = {"issuer": "main", "subject": subject, "role": role}
        participant = self.ask("POST", f"/threads/{thread}/participants", json=body)
        invitation = self.ask("POST", f"/threads/{thread}/invitations", json={"role": role})
        return {"participant_id": participant["participant_id"], "invitation_id": invitation["invitation_id"]}

    def invite(self, thread: str) -> str:
        """Returns the token of a new invitation, which is as powerful as a key."""
        return self.ask("POST", f"/threads/{thread}/invitations", json={"role": "viewer"})["token"]

    def make_thread(self) -> str:
        return self.ask("POST", "/threads", json={"metadata": {"note": self.mark}})["thread_id"]

    def make_assistant(self, **more) -> str:
        body = {
            "graph_id": "nested", "name": self.mark, "description": self.mark, "metadata": {"note": self.mark},
            "config": {"configurable": {"note": self.mark}}, **more,
        }  # fmt: skip
        return self.ask("POST", "/assistants", json=body)["assistant_id"]

    def make_cron(self, assistant: str) -> str:
        body = {
            "assistant_id": assistant, "schedule": "0 0 1 1 *", "input": human(self.mark), "metadata": {"note": self.mark},
        }  # fmt: skip
        return self.ask("POST", "/runs/crons", json=body)["cron_id"]

    def make_item(self, namespace: str | None = None) -> dict:
        item = {"namespace": [namespace or f"{self.mark}-space"], "key": f"{self.mark}-key"}
        self.ask("PUT", "/store/items", 204, json={**item, "value": {"note": self.mark}})
        return item

    # ---- everything ---------------------------------------------------

    def snapshot(self) -> dict[str, object]:
        """Returns everything of this user that the user can see, by path."""
        found = {}

        def look(method: str, path: str, **options):
            found[f"{method} {path} {json.dumps(options)}"] = answer = self.ask(method, path, **options)
            return answer

        for thread in look("POST", "/threads/search", json={"limit": 1000}):
            base = f"/threads/{thread['thread_id']}"
            for part in ("", "/state", "/history", "/branches", "/timeline", "/runs", "/participants", "/invitations"):
                look("GET", base + part)
            look("GET", f"{base}/room")
            look("GET", f"{base}/room/messages")
            for run in found[f"GET {base}/runs {{}}"]:
                look("GET", f"{base}/runs/{run['run_id']}")
        for assistant in look("POST", "/assistants/search", json={"limit": 1000}):
            look("POST", f"/assistants/{assistant['assistant_id']}/versions", json={})
        look("POST", "/runs/crons/search", json={"limit": 1000})
        look("POST", "/store/items/search", json={"namespace_prefix": [], "limit": 1000})
        look("POST", "/store/namespaces", json={"limit": 1000})
        return found


@contextmanager
def people(server, *subjects: str):
    """Creates a Person for each."""
    made = [Person(server, subject, server.user(subject)) for subject in subjects]
    try:
        yield made
    finally:
        for person in made:
            person.close()
