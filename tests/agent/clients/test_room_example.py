"""examples/room: two people and two agents, with both official SDKs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from programs import binary, clean_environment
from server import ROOT

EXAMPLE = ROOT / "examples/room"
CHAT = """\
  1 ada: @Planner three days in Porto, please
  2 Planner [stale]: Three days in Lisbon: trams, tiles, the castle.
  3 ben: @Critic is this a good plan?
  4 Critic [stale]: Lisbon is too hot in August.
  5 Planner: Three days in Porto: bridges, cellars, the sea.
  6 Critic: Porto is a good choice in August.
"""


def make_key(server, subject: str) -> str:
    command = [str(binary()), "key", "create", "--subject", subject, "--store", server.store]
    done = subprocess.run(command, env=server.environment(), text=True, capture_output=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def example(heddle, mock):
    """The programs of the README; (address, environment of a script)."""
    model = mock(json.loads((EXAMPLE / "model.json").read_text()))
    config = json.loads((EXAMPLE / "heddle.json").read_text())
    del config["store"]
    server = heddle(config=config, env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any"})
    return server.url, {"ADA_KEY": make_key(server, "ada"), "BEN_KEY": make_key(server, "ben")}


def check(printed: str) -> None:
    assert f"The chat after the edit:\n{CHAT}" in printed
    assert printed.strip().endswith("undone")


def test_the_python_example(example):
    url, keys = example
    done = subprocess.run([sys.executable, str(EXAMPLE / "room.py"), url], env=clean_environment() | keys, text=True,
                          capture_output=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(done.stdout)


def test_the_javascript_example(example, node, node_folder):
    url, keys = example
    shutil.copy(EXAMPLE / "room.mjs", node_folder / "clients")
    check(node("clients/room.mjs", url, env=keys, seconds=120))


def test_the_readme_shows_what_is_printed():
    assert f"The chat after the edit:\n{CHAT}" in (EXAMPLE / "README.md").read_text()
