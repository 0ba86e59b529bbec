"""`heddle threads`, `state` and `history` on a server's database."""

from __future__ import annotations

import json

from moving import ECHO, conversation, make_thread, say


def test_the_only_namespace_of_a_thread_is_shown(secured):
    server = secured(graphs={"echo": ECHO})
    with server.as_user("alice") as alice:
        thread, empty = conversation(alice, ["one"]), make_thread(alice)
    listed = [line.split() for line in server.tool("threads", server.store).stdout.splitlines()]
    principal = listed[0][3]
    assert {line[0]: line[1] for line in listed} == {thread: "idle", empty: "idle"}
    state = server.tool("state", server.store, thread, "--principal", principal)
    assert 'log: ["one","branch"' in state.stdout and not state.stderr
    assert "branch" in server.tool("history", server.store, thread, "--principal", principal).stdout
    whole = server.tool("state", server.store, thread, "--principal", principal, "--graph", "echo.json")
    assert json.loads(whole.stdout)["values"]["log"][0] == "one"
    assert "no checkpoints" in server.tool("history", server.store, empty, "--principal", principal, status=1).stderr
    assert "no checkpoints" in server.tool("state", server.store, thread, status=1).stderr  # without --principal


def test_the_namespaces_of_several_assistants_are_listed(secured):
    server = secured(graphs={"echo": ECHO, "other": {**ECHO, "name": "other"}})
    with server.as_user("alice") as alice:
        thread = make_thread(alice)
        say(alice, thread, "one")
        answer = alice.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "other", "input": {"log": ["two"]}})
        assert answer.status_code == 200, answer.text
    principal = server.tool("threads", server.store).stdout.split()[3]
    where = [server.store, thread, "--principal", principal]
    for command in ("state", "history"):
        refused = server.tool(command, *where, status=1).stderr
        assert "2 namespaces; choose one" in refused
        for line in refused.splitlines()[1:]:
            ns = line.strip().removeprefix("--ns ").strip('"')
            assert ns.startswith("assistant:")
            assert server.tool(command, *where, "--ns", ns).stdout
