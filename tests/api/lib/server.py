"""Starts, stops, kills and restarts the server under test, on a free loopback port.

    with Server.create() as server:      # heddle serve, or the peer (HEDDLE_API_TARGET=peer)
        httpx.get(server.url + "/ok")

A Heddle server has a SQLite file, or the given store, that outlives kill() and restart(). stop() is
itself a test: SIGTERM must end the process with status 0, and the sanitizers must have reported
nothing.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
GRAPHS = HERE / "graphs"
PEER = HERE.parent / "peer"
START_SECONDS, STOP_SECONDS = 120, 120
COMPLAINT = re.compile(r"(ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer)")


def is_peer() -> bool:
    return os.environ.get("HEDDLE_API_TARGET", "heddle") == "peer"


def build_folder() -> Path:
    return Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))


def binary() -> Path:
    """Returns the program under test: the build with sanitizers if it exists."""
    named = os.environ.get("HEDDLE_API_BINARY")
    if named:
        return Path(named)
    folder = Path(os.environ.get("HEDDLE_BUILD_ASAN") or build_folder())
    found = [path for path in (folder / "heddle", folder / "src/cli/heddle") if path.exists()]
    if not found:
        raise FileNotFoundError(f"no program called heddle in {folder}")
    return found[0]


# Ports that the system does not assign automatically, in shares (tests/browser/lib/programs.ts uses
# the same ones). A restarted server must find its port free, also while other tests run on this
# machine.
FIRST_PORT, PORTS_EACH, SHARES = 20000, 200, 60


@functools.cache
def port_share() -> tuple[socket.socket, itertools.cycle]:
    """Reserves a share for this process until it ends, by binding the share's first UDP port."""
    start = random.randrange(SHARES)
    for number in range(start, start + SHARES):
        first = FIRST_PORT + number % SHARES * PORTS_EACH
        mark = socket.socket(type=socket.SOCK_DGRAM)
        try:
            mark.bind(("127.0.0.1", first))
        except OSError:
            mark.close()
            continue
        return mark, itertools.cycle(range(first, first + PORTS_EACH))
    raise RuntimeError("all ports are somebody's")


def free_port() -> int:
    """Returns a port that no other test gets while this process lives; they repeat once the share
    is used up."""
    for port in itertools.islice(port_share()[1], PORTS_EACH):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


class Server:
    """A server process and the folder with all its files."""

    def __init__(
        self, graphs: dict[str, Path] | None = None, options: list[str] | None = None, store: str | None = None
    ):
        self.folder = Path(tempfile.mkdtemp(prefix="heddle-api-"))
        self.store = store or f"sqlite:{self.folder}/heddle.db"
        self.graphs = graphs or {path.stem: path for path in sorted(GRAPHS.glob("*.json"))}
        self.options = options or []
        self.port = free_port()
        self.process: subprocess.Popen | None = None

    @staticmethod
    def create(**arguments) -> Server:
        return (PeerServer if is_peer() else Server)(**arguments)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def command(self) -> list[str]:
        graphs = [part for name, path in self.graphs.items() for part in ("--graph", f"{name}={path}")]
        return [
            str(binary()), "serve", "--host", "127.0.0.1", "--port", str(self.port),
            "--store", self.store, "--ttl-sweep-interval", "0.01", *graphs, *self.options,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        # The user's settings must not change what is tested.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEDDLE_", "LANG"))}
        return {
            **kept,
            "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }

    def start(self) -> Server:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, env=self.environment(), stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server does not answer\n{self.tail()}")
            time.sleep(0.02)
        return self

    def answers(self) -> bool:
        try:
            return httpx.get(self.url + "/ok", timeout=30).json() == {"ok": True}
        except (httpx.TransportError, ValueError):
            return False

    def stop(self) -> None:
        """Sends SIGTERM and requires a clean exit."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server does not end on SIGTERM\n{self.tail()}") from None
        self.process = None
        self.judge_end(status)

    def judge_end(self, status: int) -> None:
        assert status == 0, f"the server ended with {status}\n{self.tail()}"
        self.check_log()

    def check_log(self) -> None:
        said = self.log.read_text(errors="replace")
        found = COMPLAINT.search(said)
        assert not found, said[max(0, found.start() - 500) : found.start() + 6000]

    def kill(self) -> None:
        """kill -9: the server cannot save anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self) -> Server:
        """Starts again after stop() or kill(), with the same port and database."""
        assert self.process is None
        return self.start()

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, kind, *rest) -> None:
        try:
            if kind is None:
                self.stop()
        finally:
            self.remove()


class PeerServer(Server):
    """@langchain/langgraph-api with the same graphs, written for it in tests/api/peer."""

    def command(self) -> list[str]:
        # Node resolves modules from a file's folder, so the files go beside the modules.
        place = Path(os.environ["HEDDLE_API_NODE"]) / "peer"
        place.mkdir(exist_ok=True)
        for file in PEER.glob("*.mjs"):
            shutil.copy(file, place)
        return ["node", str(place / "serve.mjs"), str(self.port), str(self.folder)]

    def judge_end(self, status: int) -> None:
        pass  # the peer's exit is not tested
