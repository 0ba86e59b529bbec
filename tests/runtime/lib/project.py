"""A project with a langgraph.json, served by `heddle serve --config langgraph.json`.

    server = Project(folder=HERE / "graphs").start()            # a folder that has a langgraph.json
    server = Project(config={"graphs": {…}}, files={"a.py": "…"}).start()

The folder is copied, so a test may change its files. Workers use the group's virtual
environment and node_modules, where the packages of this tree are installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from programs import Heddle, wait_for

VENV = Path(os.environ.get("HEDDLE_RUNTIME_VENV", "missing"))
NODE = Path(os.environ.get("HEDDLE_RUNTIME_NODE", "missing"))


def lives(pid: int) -> bool:
    """Reports whether a process is running: a zombie counts as ended."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Project(Heddle):
    """folder, config and files define the project; options and env are the server's."""

    def __init__(self, folder: Path | None = None, config=None, files=None, env=None, options=None):
        super().__init__(env=env, options=options)
        self.project = self.folder / "project"
        if folder:
            shutil.copytree(folder, self.project, ignore=shutil.ignore_patterns("__pycache__"))
        self.project.mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            file = self.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if config is not None:
            (self.project / "langgraph.json").write_text(json.dumps(config))
        # Node resolves packages from the folder of a file.
        (self.project / "node_modules").symlink_to(NODE / "node_modules")
        self.options = [
            "--config", str(self.project / "langgraph.json"),
            "--runtime-python", str(VENV / "bin" / "python"),
            *self.options,
        ]  # fmt: skip

    def workers(self, runtime: str = "python") -> list[int]:
        """The process ids of the workers: the server's children."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = int(re.search(r"^PPid:\s+(\d+)", (path / "status").read_text(), re.MULTILINE)[1])
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, TypeError):
                continue
            if parent == self.process.pid and ("heddle.runtime" in command) == (runtime == "python"):
                found.append(int(path.name))
        return sorted(found)

    def ready(self, runtime: str = "python", count: int = 1) -> list[int]:
        """Waits for so many worker processes; runs wait for the loading themselves."""
        return wait_for(
            lambda: len(found := self.workers(runtime)) >= count and found, what=f"{count} {runtime} workers"
        )
