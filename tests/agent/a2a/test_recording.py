"""Requests to A2A agents are recorded, and replayed without them."""

from __future__ import annotations

import subprocess

import pytest
from programs import binary, clean_environment


@pytest.mark.parametrize("peer", ["rpc", "rest-plain", "old"])
def test_the_shipped_agent_is_replayed_from_a_recording(heddle, mock, process, node_folder, peer):
    model = mock({
        "rules": [
            {"when": {"tool_results": False}, "tool_calls": [{"name": "friend", "args": {"message": "artifact"}}]},
            {"content": "It says {{results}}"},
        ]
    })  # fmt: skip
    own = heddle(config={"record": True})
    thread = own.thread()
    line = "old" if peer.startswith("old") else "new"
    other = process(["node", str(node_folder / "a2a" / "agent.mjs"), line], ready=r"ready (\S+)")
    configurable = model.configurable(a2a=[{"name": "friend", "url": f"{other.found[1]}/{peer}"}])
    values = own.wait("agent", {"messages": [{"role": "user", "content": "go"}]}, thread, configurable)
    assert values["messages"][-1]["content"].startswith("It says All done.")
    model.stop()
    own.stop()
    command = [str(binary()), "replay", thread, "--store", f"sqlite:{own.folder}/heddle.db"]
    done = subprocess.run(command, env=clean_environment(), text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "4 exchanges, success: the same" in done.stdout
