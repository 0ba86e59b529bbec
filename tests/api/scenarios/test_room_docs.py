"""The commands of docs/rooms.md work when they are pasted into one shell, and print what it shows."""

import os
import re
import subprocess

import pytest
from server import ROOT, Server

pytestmark = pytest.mark.beyond_peer("has no rooms")

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)

# A machine under load may need longer than the five seconds of the page.
SETTLE = """
while curl -s $api/threads/$thread/cascades | jq -e '.[0].status == "running"' >/dev/null; do sleep 0.1; done
"""


def walk() -> list[tuple[str, str]]:
    """(commands, output) of the blocks behind the one that starts the server; output may be empty."""
    text = (ROOT / "docs/rooms.md").read_text().partition("## A walk")[2].partition("\n## ")[0]
    steps: list[tuple[str, str]] = []
    for kind, block in BLOCK.findall(text):
        if kind == "sh":
            steps.append((block, ""))
        else:
            steps[-1] = (steps[-1][0], block)
    assert "heddle serve" in steps[0][0] and len(steps) > 5
    return steps[1:]


def test_the_walk_through_a_room():
    graphs = {"agent": ROOT / "src/cli/graphs/agent.json"}
    script = "".join(f"{commands}\necho '=== end'\n" for commands, _ in walk())
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    with Server(graphs=graphs, options=["--store", "memory:"]) as server:
        script = script.replace("http://localhost:2024", server.url).replace("sleep 5", SETTLE)
        done = subprocess.run(["bash", "-eu"], input=script, capture_output=True, text=True, timeout=120, env=keyless)
    assert done.returncode == 0 and not done.stderr, done.stderr
    printed = [each.lstrip("\n") for each in done.stdout.split("=== end\n")]
    for (commands, expected), got in zip(walk(), printed, strict=False):
        assert not expected or got == expected, commands
