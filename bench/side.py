"""Shared by the benchmarks of servers: a server under load, and the packages of the peer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
TICKS = os.sysconf("SC_CLK_TCK")
LOAD = BUILD / "bench/bench-load"


def say(text: str = "") -> None:
    print(text, flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Side:
    """A server; `{port}` and `{folder}` in its command are replaced."""

    name: str
    command: list
    env: dict = field(default_factory=dict)
    port: int = 0
    start_ms: float = 0
    idle_mb: float = 0
    process: subprocess.Popen | None = None
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="bench-server-")))

    def start(self, ready: str = "/ok") -> None:
        self.port = free_port()
        command = [str(part).format(port=self.port, folder=self.folder) for part in self.command]
        env = {**os.environ, "LOG_LEVEL": "error", "LANGSMITH_TRACING": "false", **self.env}
        with open(self.folder / "log", "wb") as log:
            began = time.monotonic()
            self.process = subprocess.Popen(command, cwd=self.folder, env=env, stdout=log, stderr=log)
        while True:
            try:
                self.ask("GET", ready)
                break
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"bench: {self.name} ended\n{(self.folder / 'log').read_text()}") from None
                time.sleep(0.001)
        self.first()
        self.start_ms = (time.monotonic() - began) * 1e3
        time.sleep(1)
        self.idle_mb = self.memory_mb()

    def first(self) -> None:
        """Does what the server must do, besides responding, to count as started."""

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method: str, path: str, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
        return json.loads(text) if text.strip() else None

    def processes(self) -> list[int]:
        """Returns the server and all its descendants."""
        parents = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # the process has ended
        found = [self.process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def memory_mb(self) -> float:
        """Returns the resident memory of all processes."""
        lines = [line for pid in self.processes() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        """Returns the CPU time of all processes."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.processes()]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / TICKS


class Loaded(Side):
    """A server under load."""

    enough = 0  # threads created for each second of a figure; it ends when they are used up

    def load(self, requests: list[str], at_once: int, seconds: int, expect: str, repeat: bool = False) -> dict:
        before = self.cpu_s()
        command = [str(LOAD), str(self.port), str(at_once), str(seconds), "--expect", expect, *(["--repeat"] * repeat)]
        done = subprocess.run(command, input="\n".join(requests) + "\n", capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"bench: {self.name}: {done.stderr}{done.stdout}")
        found = json.loads(done.stdout)
        found["cpu_ms"] = (self.cpu_s() - before) * 1e3 / max(1, found["requests"])
        found["used_up"] = not repeat and found["requests"] == len(requests)
        return found


def node_packages(name: str, packages: list[str], program: Path) -> Path:
    """Returns a folder beside the build with these npm packages and the program."""
    folder = BUILD / name
    listed = folder / "packages"
    if not listed.exists() or listed.read_text() != "\n".join(packages):
        say("bench: installing the npm packages …")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], cwd=folder, check=True
        )
        listed.write_text("\n".join(packages))
    shutil.copy(program, folder)
    return folder


def peer_version(folder: Path) -> str:
    package = json.loads((folder / "node_modules/@langchain/langgraph-api/package.json").read_text())
    node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    return f"@langchain/langgraph-api {package['version']} on node {node}; {os.cpu_count()} cores"
