"""`heddle new` creates projects that `heddle dev` serves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from programs import binary

HELLO = {"messages": [{"role": "user", "content": "hello"}]}


def new(*arguments, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(binary()), "new", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("kind", "source"), [("python", "agent.py"), ("typescript", "src/agent.ts"), ("native", "agent.json")]
)
def test_a_new_project_works(kind, source, dev, tmp_path):
    made = new("mine", f"--{kind}", cwd=tmp_path)
    assert made.returncode == 0 and "heddle dev" in made.stdout, made.stderr
    server = dev(folder=tmp_path / "mine")
    said = server.waits_for("  + agent")
    assert server.url.replace("127.0.0.1", "localhost") in said
    assert (
        server.wait("agent", HELLO)["messages"][-1]["content"]
        == f"You said: hello. Change {source}, and I shall say something else."
    )


def test_python_is_the_default(tmp_path):
    assert new("mine", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {
        "langgraph.json", "agent.py", "requirements.txt", ".env", ".gitignore", "README.md",
    }  # fmt: skip


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    done = new("mine", cwd=tmp_path)
    assert done.returncode == 1 and "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--rust"], ["a", "--python", "--native"]])
def test_invalid_arguments_are_rejected(arguments, tmp_path):
    done = new(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and "usage: heddle new" in done.stderr
    assert not any(tmp_path.iterdir())


def test_dev_needs_a_project(tmp_path):
    done = subprocess.run([str(binary()), "dev"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "heddle new DIR" in done.stderr
