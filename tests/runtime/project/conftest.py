"""`heddle dev` in a project's folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from programs import binary, collect, wait_for

# By its path: this folder has the same name.
SPEC = importlib.util.spec_from_file_location("served_project", Path(__file__).parents[1] / "lib" / "project.py")
LIB = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LIB)


class Dev(LIB.Project):
    """Only the command, as typed in the project's folder."""

    def command(self) -> list[str]:
        options = self.options[2:]  # it finds the langgraph.json itself
        store = f"sqlite:{self.folder}/heddle.db"
        return [str(binary()), "dev", str(self.project), "--port", str(self.port), "--store", store, *options]

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def waits_for(self, text: str, times: int = 1) -> str:
        """Waits until it has printed this so many times."""
        return wait_for(
            lambda: (said := self.said()).count(text) >= times and said, seconds=120, what=f"{text!r}: {self.tail()}"
        )


@pytest.fixture(scope="module")
def dev_module():
    yield from collect(Dev)


@pytest.fixture
def dev():
    yield from collect(Dev)
