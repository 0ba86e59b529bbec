"""TypeScript graphs on a server behave as in process, through the official JavaScript SDK."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import clean_environment

HERE = Path(__file__).parent
PROJECT = HERE.parents[2] / "js" / "tests" / "project"
SCENARIOS = ["chat", "react", "fanout", "nested", "questions", "breakpoint", "entry", "failure", "slow", "update"]

# Generated ids of messages, tasks and interrupts.
NAME = re.compile(r"(?:run-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


def without_next(value):
    """LangGraph for JavaScript treats a task as done that was answered once and interrupts again."""
    if isinstance(value, dict) and any(questions for _, questions in value.get("asked", ())):
        return {key: member for key, member in value.items() if key != "next"}
    return value


def normalized(value):
    """Generated ids become numbers, in order of first occurrence."""
    value = [without_next(each) for each in value] if isinstance(value, list) else value
    names: dict[str, str] = {}
    text = NAME.sub(lambda match: names.setdefault(match[0], f"id-{len(names)}"), json.dumps(value))
    return json.loads(text)


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=PROJECT)


@pytest.fixture(scope="module")
def results(server):
    shutil.copy(HERE / "drive.ts", server.project / "drive.ts")
    done = subprocess.run(
        ["node", "--import", "tsx", "drive.ts", server.url],
        cwd=server.project, env=clean_environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_in_process(results, name):
    assert set(results) == set(SCENARIOS)
    server, process = results[name]["server"], results[name]["process"]
    assert isinstance(process, list) and len(json.dumps(process)) > 100, process
    assert normalized(server) == normalized(process)
