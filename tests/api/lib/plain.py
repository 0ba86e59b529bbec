"""Plain HTTP: the calls of scenarios, and the expected responses of Heddle's own endpoints."""

from __future__ import annotations

import json
import time

import httpx
from server import is_peer


def human(text: str, identity: str | None = None) -> dict:
    return {"messages": [{"role": "user", "content": text, **({"id": identity} if identity else {})}]}


def texts(values: dict | None) -> list[str]:
    return [message["content"] for message in (values or {}).get("messages", [])]


def events(text: str) -> list[tuple[str, object, str | None]]:
    """(event, data, id) of each frame of a stream."""
    found = []
    for frame in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in frame.split("\n") if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if fields:
            data = fields.get("data")
            found.append((fields.get("event"), json.loads(data) if data else None, fields.get("id")))
    return found


def until(condition, seconds: float = 60):
    """Repeats the condition until its result is true, and returns that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not true in {seconds} s"
        time.sleep(0.02)
    return found


class Thread:
    """One thread of one server."""

    def __init__(self, http: httpx.Client, **body):
        self.http = http
        self.id = self.ask("POST", "/threads", json=body)["thread_id"]

    def ask(self, method: str, path: str, status: int = 200, **options):
        answer = self.http.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    def path(self, rest: str) -> str:
        return f"/threads/{self.id}{rest}"

    def record(self) -> dict:
        return self.ask("GET", self.path(""))

    def run(self, assistant: str, **body) -> dict:
        """Runs to the end; returns the final values."""
        return self.ask("POST", self.path("/runs/wait"), json={"assistant_id": assistant, **body})

    def say(self, assistant: str, text: str, identity: str | None = None, **body) -> dict:
        return self.run(assistant, input=human(text, identity), **body)

    def stream(self, assistant: str, **body) -> list[tuple]:
        answer = self.http.post(self.path("/runs/stream"), json={"assistant_id": assistant, **body})
        assert answer.status_code == 200, answer.text
        return events(answer.text)

    def state(self, **params) -> dict:
        return self.ask("GET", self.path("/state"), params=params)

    def history(self, **body) -> list[dict]:
        return self.ask("POST", self.path("/history"), json={"limit": 1000, **body})

    def before(self, identity: str, **body) -> str:
        """Returns the checkpoint to fork from in order to edit the message."""
        having = [
            state
            for state in self.history(**body)
            if identity in [message["id"] for message in state["values"].get("messages", [])]
        ]
        return having[-1]["parent_checkpoint"]["checkpoint_id"]

    def branches(self, **params) -> dict:
        """Returns the response of GET /branches, which must equal the one derived from the history."""
        expected = branches_of(self.history(**params))
        if is_peer():
            return expected
        answer = self.ask("GET", self.path("/branches"), params=params)
        assert {key: answer[key] for key in ("thread_id", "checkpoint_ns")} == {
            "thread_id": self.id, "checkpoint_ns": expected["checkpoint_ns"],
        }  # fmt: skip
        for ours, theirs in zip(answer["branches"], expected["branches"], strict=True):
            ours = {key: value for key, value in ours.items() if key not in ("current", "name")}
            assert ours == {key: value for key, value in theirs.items() if key not in ("current", "name")}
        return answer

    def timeline(self, **params) -> list[dict]:
        return self.ask("GET", self.path("/timeline"), params=params)


def identity(state: dict | None) -> str | None:
    return state["checkpoint"]["checkpoint_id"] if state else None


def differing(state: dict, fork: dict | None) -> dict | None:
    before = {(m["id"], json.dumps(m["content"])) for m in (fork or {}).get("values", {}).get("messages", [])}
    for message in state["values"].get("messages", []):
        if (message["id"], json.dumps(message["content"])) not in before:
            return message
    return None


def answer_to(state: dict, said: dict | None) -> str | None:
    """Returns the beginning of the reply to a user's message, up to the user's next message."""
    if not said or said["type"] != "human":
        return None
    messages = state["values"]["messages"]
    for message in messages[messages.index(said) + 1 :]:
        if message["type"] == "human":
            break
        content = message["content"]
        parts = [content] if isinstance(content, str) else [p["text"] for p in content if p.get("type") == "text"]
        if message["type"] == "ai" and any(parts):
            return next(filter(None, parts)).encode()[:200].decode(errors="ignore")
    return None


def branches_of(history: list[dict]) -> dict:
    """Makes the document that README.md describes from a whole history; the head is the newest."""
    states = {identity(state): state for state in reversed(history)}  # oldest first
    children: dict[str | None, list[str]] = {}
    for own, state in states.items():
        parent = (state.get("parent_checkpoint") or {}).get("checkpoint_id")
        children.setdefault(parent if parent in states else None, []).append(own)
    branches, owner = [], {}
    for own in sorted(states):
        parent = (states[own].get("parent_checkpoint") or {}).get("checkpoint_id")
        if parent in states and len(children[parent]) == 1:
            continue  # in the middle of a branch
        row = [own]
        while len(children.get(row[-1], [])) == 1:
            row.append(children[row[-1]][0])
        fork = states.get(parent)
        branches.append(branch_of(row, states, fork, owner.get(parent), not children.get(row[-1])))
        owner.update({each: own for each in row})
    head = identity(history[0]) if history else None
    on_the_way = set()
    step = head
    while step in states:
        on_the_way.add(step)
        step = (states[step].get("parent_checkpoint") or {}).get("checkpoint_id")
    for branch in branches:
        branch["current"] = branch["branch_id"] in on_the_way
    namespace = history[0]["checkpoint"]["checkpoint_ns"] if history else None
    return {"head": head, "checkpoint_ns": namespace, "branches": branches}


def branch_of(row: list[str], states: dict, fork: dict | None, parent: str | None, leaf: bool) -> dict:
    first, last = states[row[0]], states[row[-1]]
    return {
        "branch_id": row[0],
        "name": None,
        "parent_branch_id": parent,
        "fork_checkpoint_id": identity(fork),
        "head_checkpoint_id": row[-1],
        "leaf": leaf,
        "checkpoints": len(row),
        "source": first["metadata"]["source"],
        "run_id": first["metadata"].get("run_id"),
        "created_at": first["created_at"],
        "updated_at": last["created_at"],
        "message": differing(last, fork),
        "answer": answer_to(last, differing(last, fork)),
    }
