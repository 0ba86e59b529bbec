"""One example request for every operation of the API; the matrix sends each as every kind of user.

Each row uses ids of one user's things. `ids` is a Things (world.py): it has the path parameters by
name, and the body takes the ids that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Names that a row can use; a response must not reveal whether another user has such a thing.
NAMES = (
    "thread_id", "run_id", "branch_id", "checkpoint_id", "assistant_id", "cron_id", "item", "new_thread_id",
    "new_assistant_id", "new_item", "participant_id", "invitation_id", "invitation_token", "message_id",
    "cascade_id",
)  # fmt: skip


def human(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


@dataclass
class Row:
    ok: int = 200
    json: Callable[[dict], Any] | None = None
    params: Callable[[dict], dict] | None = None
    needs: str | None = None  # the required role, if the body rather than the path names the thread
    makes: str | None = None  # additional things that a successful request needs
    gone: int = 404  # the status if the thing does not exist
    is_read: bool = False  # changes nothing, so the request can be repeated
    is_endless: bool = False  # a stream that does not end
    own: str | None = None  # thread: participants see the owner's things here


def run(ids: dict) -> dict:
    return {"assistant_id": ids["assistant_id"], "input": human("hello")}


def run_at(ids: dict) -> dict:
    return {**run(ids), "checkpoint_id": ids["checkpoint_id"]}


def cron(ids: dict) -> dict:
    return {"assistant_id": ids["assistant_id"], "schedule": "0 0 1 1 *", "input": human("happy new year")}


def read(**options) -> Row:
    return Row(is_read=True, **options)


ROWS: dict[tuple[str, str], Row] = {
    # assistants
    ("POST", "/assistants"): Row(
        json=lambda i: {"graph_id": "echo", "assistant_id": i["new_assistant_id"], "name": "new"}
    ),
    ("POST", "/assistants/search"): read(json=lambda i: {"limit": 1000, "metadata": {}}),
    ("POST", "/assistants/count"): read(json=lambda i: {}),
    ("GET", "/assistants/{assistant_id}"): read(),
    ("PATCH", "/assistants/{assistant_id}"): Row(json=lambda i: {"name": "changed", "metadata": {"changed": True}}),
    ("DELETE", "/assistants/{assistant_id}"): Row(params=lambda i: {"delete_threads": "true"}),
    ("GET", "/assistants/{assistant_id}/graph"): read(),
    ("GET", "/assistants/{assistant_id}/schemas"): read(),
    ("GET", "/assistants/{assistant_id}/subgraphs"): read(),
    ("GET", "/assistants/{assistant_id}/subgraphs/{namespace}"): read(),
    ("POST", "/assistants/{assistant_id}/versions"): read(json=lambda i: {}),
    ("POST", "/assistants/{assistant_id}/latest"): Row(json=lambda i: {"version": 1}),
    # threads
    ("POST", "/threads"): Row(json=lambda i: {"thread_id": i["new_thread_id"], "metadata": {"new": True}}),
    ("POST", "/threads/search"): read(json=lambda i: {"limit": 1000, "ids": [i["thread_id"]]}, own="thread"),
    ("POST", "/threads/count"): read(json=lambda i: {}, own="thread"),
    ("POST", "/threads/prune"): Row(
        json=lambda i: {"thread_ids": [i["thread_id"]], "strategy": "delete"}, needs="owner"
    ),
    ("GET", "/threads/{thread_id}"): read(),
    ("PATCH", "/threads/{thread_id}"): Row(json=lambda i: {"metadata": {"changed": True}}),
    ("DELETE", "/threads/{thread_id}"): Row(ok=204),
    ("POST", "/threads/{thread_id}/copy"): Row(gone=409),
    ("GET", "/threads/{thread_id}/state"): read(),
    ("POST", "/threads/{thread_id}/state"): Row(
        json=lambda i: {"values": human("changed"), "checkpoint_id": i["checkpoint_id"]}
    ),
    ("PATCH", "/threads/{thread_id}/state"): Row(json=lambda i: {"metadata": {"changed": True}}),
    ("GET", "/threads/{thread_id}/state/{checkpoint_id}"): read(),
    ("POST", "/threads/{thread_id}/state/checkpoint"): read(
        json=lambda i: {"checkpoint": {"checkpoint_id": i["checkpoint_id"]}}
    ),
    ("GET", "/threads/{thread_id}/history"): read(params=lambda i: {"before": i["checkpoint_id"]}),
    ("POST", "/threads/{thread_id}/history"): read(
        json=lambda i: {"before": {"configurable": {"checkpoint_id": i["checkpoint_id"]}}}
    ),
    ("GET", "/threads/{thread_id}/branches"): read(params=lambda i: {"assistant_id": i["assistant_id"]}),
    ("PATCH", "/threads/{thread_id}/branches"): Row(json=lambda i: {"checkpoint_id": i["checkpoint_id"]}),
    ("PATCH", "/threads/{thread_id}/branches/{branch_id}"): Row(json=lambda i: {"name": "changed"}),
    ("DELETE", "/threads/{thread_id}/branches/{branch_id}"): Row(ok=204),
    ("GET", "/threads/{thread_id}/timeline"): read(),
    ("GET", "/threads/{thread_id}/agents"): read(),
    ("DELETE", "/threads/{thread_id}/agents/{assistant_id}"): Row(ok=204),
    ("GET", "/threads/{thread_id}/messages"): read(
        params=lambda i: {"assistant_id": i["assistant_id"], "checkpoint_id": i["checkpoint_id"]}
    ),
    ("GET", "/threads/{thread_id}/stream"): read(is_endless=True),
    # runs
    ("POST", "/threads/{thread_id}/runs"): Row(json=run_at),
    ("POST", "/threads/{thread_id}/runs/stream"): Row(json=run_at),
    ("POST", "/threads/{thread_id}/runs/wait"): Row(json=run_at),
    ("POST", "/runs"): Row(json=run),
    ("POST", "/runs/stream"): Row(json=run),
    ("POST", "/runs/wait"): Row(json=run),
    ("POST", "/runs/batch"): Row(json=lambda i: [run(i), run(i)]),
    ("GET", "/threads/{thread_id}/runs"): read(),
    ("GET", "/threads/{thread_id}/runs/{run_id}"): read(),
    ("DELETE", "/threads/{thread_id}/runs/{run_id}"): Row(ok=204),
    ("POST", "/threads/{thread_id}/runs/{run_id}/cancel"): Row(ok=202, makes="pending"),
    ("POST", "/runs/cancel"): Row(
        ok=204, json=lambda i: {"thread_id": i["thread_id"], "run_ids": [i["run_id"]]}, needs="editor", makes="pending"
    ),
    ("GET", "/threads/{thread_id}/runs/{run_id}/stream"): read(),
    ("GET", "/threads/{thread_id}/runs/{run_id}/join"): read(),
    ("GET", "/runs/{run_id}/stream"): read(),
    # crons
    ("POST", "/runs/crons"): Row(json=cron),
    ("POST", "/threads/{thread_id}/runs/crons"): Row(json=cron),
    ("POST", "/runs/crons/search"): read(json=lambda i: {"assistant_id": i["assistant_id"]}),
    ("POST", "/runs/crons/count"): read(json=lambda i: {"thread_id": i["thread_id"]}),
    ("PATCH", "/runs/crons/{cron_id}"): Row(json=lambda i: {"enabled": False}),
    ("DELETE", "/runs/crons/{cron_id}"): Row(ok=204),
    # the store
    ("PUT", "/store/items"): Row(ok=204, json=lambda i: {**i["new_item"], "value": {"changed": True}}),
    ("GET", "/store/items"): read(
        params=lambda i: {"namespace": ".".join(i["item"]["namespace"]), "key": i["item"]["key"]}
    ),
    ("DELETE", "/store/items"): Row(ok=204, json=lambda i: i["item"]),
    ("POST", "/store/items/search"): read(json=lambda i: {"namespace_prefix": i["item"]["namespace"]}),
    ("POST", "/store/namespaces"): read(json=lambda i: {"prefix": i["item"]["namespace"]}),
    ("GET", "/store/namespaces"): read(params=lambda i: {"prefix": ".".join(i["item"]["namespace"])}),
    # sharing
    ("GET", "/threads/{thread_id}/participants"): read(),
    ("POST", "/threads/{thread_id}/participants"): Row(
        json=lambda i: {"issuer": "main", "subject": "somebody", "role": "viewer"}
    ),
    ("PATCH", "/threads/{thread_id}/participants/{participant_id}"): Row(json=lambda i: {"role": "editor"}),
    ("DELETE", "/threads/{thread_id}/participants/{participant_id}"): Row(
        ok=204, needs="owner"
    ),  # to remove another participant
    ("GET", "/threads/{thread_id}/invitations"): read(),
    ("POST", "/threads/{thread_id}/invitations"): Row(json=lambda i: {"role": "viewer"}),
    ("DELETE", "/threads/{thread_id}/invitations/{invitation_id}"): Row(ok=204),
    ("POST", "/invitations/accept"): Row(json=lambda i: {"token": i["invitation_token"]}),
    # rooms
    ("GET", "/threads/{thread_id}/room"): read(),
    ("PUT", "/threads/{thread_id}/room"): Row(json=lambda i: {"agents": [{"assistant_id": "echo"}]}),
    ("GET", "/threads/{thread_id}/room/messages"): read(),
    ("POST", "/threads/{thread_id}/room/stop"): Row(makes="pending"),
    ("POST", "/threads/{thread_id}/room/messages"): Row(ok=201, json=lambda i: {"content": "hello"}),
    ("POST", "/threads/{thread_id}/room/messages/stream"): Row(json=lambda i: {"content": "hello"}),
    ("GET", "/threads/{thread_id}/room/messages/{message_id}"): read(),
    ("GET", "/threads/{thread_id}/room/messages/{message_id}/runs"): read(),
    ("DELETE", "/threads/{thread_id}/room/messages/{message_id}"): Row(needs="owner"),
    ("POST", "/threads/{thread_id}/room/messages/{message_id}/feedback"): Row(
        ok=422, json=lambda i: {"rating": "up"}
    ),  # of a person's message
    ("PATCH", "/threads/{thread_id}/room/messages/{message_id}"): Row(
        json=lambda i: {"content": "changed"}, needs="owner"
    ),  # the owner is the author
    ("POST", "/threads/{thread_id}/room/messages/{message_id}/retry"): Row(
        ok=422, json=lambda i: {"dry_run": True}
    ),  # of a person's message
    ("GET", "/threads/{thread_id}/cascades"): read(),
    ("GET", "/threads/{thread_id}/cascades/{cascade_id}"): Row(makes="cascade"),
    ("POST", "/threads/{thread_id}/cascades/{cascade_id}"): Row(json=lambda i: {"action": "undo"}, makes="cascade"),
    ("POST", "/threads/{thread_id}/room/messages/{message_id}/withdraw"): Row(ok=409),  # it is no question
    ("POST", "/threads/{thread_id}/room/typing"): Row(ok=204),
    ("PUT", "/threads/{thread_id}/room/read"): Row(json=lambda i: {"seq": 0}),
    ("POST", "/threads/{thread_id}/room/branch"): Row(
        ok=201, json=lambda i: {"message_id": i["message_id"], "thread_id": i["new_thread_id"]}
    ),
    ("GET", "/mentions"): read(own="thread"),
    # the server
    ("GET", "/ok"): read(),
    ("GET", "/health"): read(),
    ("GET", "/info"): read(),
    ("GET", "/metrics"): read(),
    ("GET", "/openapi.json"): read(),
    ("GET", "/docs"): read(),
}
