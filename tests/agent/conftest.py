"""Fixtures of the agent suites: servers, a scripted model, misbehaving servers, Node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import Heddle, Mock, Process, clean_environment, collect
from scripted import Scripted

HERE = Path(__file__).resolve().parent


@pytest.fixture
def heddle():
    """heddle(graphs=…, config=…, env=…, options=…): a running `heddle serve`."""
    yield from collect(Heddle)


@pytest.fixture
def mock():
    """mock(script): a running `heddle mock-model`; without a script, the built-in one."""
    yield from collect(Mock)


@pytest.fixture
def process():
    """process(command, ready="regular expression"): another program, for the duration of the test."""
    yield from collect(Process)


@pytest.fixture
def scripted():
    """scripted(handler): a Scripted server, for the duration of the test."""
    made = []

    def create(handler) -> Scripted:
        server = Scripted(handler)
        made.append(server)
        return server.__enter__()

    yield create
    for server in made:
        server.stop()
    for server in made:
        assert not server.errors, server.errors


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """The folder of the npm packages, with copies of all .mjs files laid out as in tests/agent."""
    folder = Path(os.environ["HEDDLE_AGENT_NODE"])
    # Node resolves modules from a file's folder, so the files go beside the modules.
    for source in HERE.rglob("*.mjs"):
        target = folder / source.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return folder


@pytest.fixture(scope="session")
def node(node_folder):
    """node("part/file.mjs", *arguments): runs it and returns its output. Fails if it fails."""

    def run(script: str, *arguments: str, env: dict | None = None, seconds: float = 500) -> str:
        done = subprocess.run(
            ["node", str(node_folder / script), *arguments],
            env=clean_environment() | (env or {}), cwd=node_folder, text=True, capture_output=True, timeout=seconds,
        )  # fmt: skip
        assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
