"""Undelivered webhooks: they outlive the process, on every database, and move with their user."""

from __future__ import annotations

import pytest
from listener import Listener, closed_port
from moving import ECHO, NEW_KEY, configure, make_thread, rekey
from programs import wait_for
from sql import texts

OUTGOING = {"outgoing": {"private": "allow"}}


@pytest.fixture
def closed():
    with closed_port() as port:
        yield port


def rows(server) -> list[str]:
    """Returns the ids of the deliveries."""
    return texts(server.store, "outbox", "delivery_id")


def make_webhook(server, port: int) -> str:
    with server.as_user("alice") as alice:
        body = {"assistant_id": "echo", "input": {"log": ["hi"]}, "webhook": f"http://127.0.0.1:{port}/hook"}
        thread = make_thread(alice)
        answer = alice.post(f"/threads/{thread}/runs/wait", json=body)
        assert answer.status_code == 200, answer.text
    return thread


def is_delivered_once(server, port: int, thread: str, delivery: str) -> None:
    """The server that starts now delivers it, and the next one does not."""
    with Listener(port=port) as listener:
        server.restart()
        sent = listener.next()
        assert (sent["body"]["thread_id"], sent["headers"]["Webhook-Id"]) == (thread, delivery)
        wait_for(lambda: not rows(server), what="the row to be deleted")
        server.kill()
        server.restart()
        with server.as_user("alice") as alice:
            body = {"assistant_id": "echo", "input": {"log": ["hi"]}, "webhook": f"{listener.url}/another"}
            assert alice.post("/runs/wait", json=body).status_code == 200
        assert listener.next()["path"] == "/another"


def test_a_webhook_outlives_the_process(secured, store, closed):
    server = secured(store=store, graphs={"echo": ECHO}, config=OUTGOING)
    thread = make_webhook(server, closed)
    (delivery,) = rows(server)
    server.kill()
    is_delivered_once(server, closed, thread, delivery)


def test_a_webhook_moves_with_its_user(secured, store, closed):
    server = secured(store=store, graphs={"echo": ECHO}, config=OUTGOING, env={"TEST_NEW_KEY": NEW_KEY})
    thread = make_webhook(server, closed)
    (delivery,) = rows(server)
    server.kill()
    configure(server, "new", "old")
    assert "no data is left" in rekey(server)
    is_delivered_once(server, closed, thread, delivery)
