"""The two programs under test: `heddle serve` and `heddle mock-model`.

    server = Heddle(graphs={"agent": {…} or a path}, config={…}, env={…}, options=[…]).start()
    model = Mock(script={…}).start()

stop() fails the test unless the program exits with status 0 and without sanitizer reports.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import httpx
from plain import events
from server import START_SECONDS, Server, binary, free_port

# Variables that the user's environment may have and that tests must not see.
FOREIGN = re.compile(
    r"HEDDLE_|LANG|OPENAI_|ANTHROPIC_|GOOGLE_|GEMINI_|CUSTOM_API_KEY|MODEL_NAME|SEMANTIC_ROUTER_|DOCPROC_|RAG_|SUPABASE_"
    r"|(http|https|all|no)_proxy$",
    re.IGNORECASE,
)
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not FOREIGN.match(name)} | SANITIZERS


def wait_for(condition, seconds: float = 60, what: str = "a condition"):
    """Returns the first truthy value of condition(); fails on timeout."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


class Heddle(Server):
    """`heddle serve` with a SQLite file that outlives kill() and restart().

    graphs: name to a path or to a declaration; None: those that Heddle ships.
    config: members of the file for --config. env: additional environment; None as a value removes.
    """

    def __init__(self, graphs=None, config=None, env=None, options=None):
        super().__init__(options=options)
        self.graphs = {name: self.graph_file(name, graph) for name, graph in (graphs or {}).items()}
        self.env = env or {}
        if config is not None:
            file = self.folder / "config.json"
            file.write_text(json.dumps(config))
            self.options = ["--config", str(file), *self.options]

    def graph_file(self, name: str, graph) -> Path:
        if not isinstance(graph, dict):
            return Path(graph)
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(graph))
        return file

    def environment(self) -> dict[str, str]:
        env = clean_environment() | self.env
        return {name: str(value) for name, value in env.items() if value is not None}

    def client(self, **options) -> httpx.Client:
        """Plain HTTP; the caller closes it."""
        return httpx.Client(base_url=self.url, timeout=120, **options)

    def ask(self, method: str, path: str, status: int = 200, **options):
        """Sends one request; returns the JSON of the response."""
        with self.client() as client:
            answer = client.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    def thread(self, **body) -> str:
        return self.ask("POST", "/threads", json=body)["thread_id"]

    def wait(self, assistant: str, input=None, thread: str | None = None, configurable=None, **body):
        """Runs to the end; returns the final values, with `__error__` or `__interrupt__` if it
        ended so."""
        body = run_body(assistant, input, configurable, body)
        return self.ask("POST", (f"/threads/{thread}" if thread else "") + "/runs/wait", json=body)

    def stream(self, assistant: str, input=None, thread: str | None = None, configurable=None, **body) -> list[tuple]:
        """Runs to the end; returns [(event, data, id)]."""
        body = run_body(assistant, input, configurable, body)
        with self.client() as client:
            answer = client.post((f"/threads/{thread}" if thread else "") + "/runs/stream", json=body)
        assert answer.status_code == 200, answer.text
        return events(answer.text)

    def state(self, thread: str, **params) -> dict:
        return self.ask("GET", f"/threads/{thread}/state", params=params)

    def database(self) -> bytes:
        """Returns every stored byte."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.glob("heddle.db*")))


def run_body(assistant: str, input, configurable, body: dict) -> dict:
    body = {"assistant_id": assistant, **body}
    if input is not None:
        body["input"] = input
    if configurable is not None:
        body["config"] = {**body.get("config", {}), "configurable": configurable}
    return body


class Mock(Server):
    """`heddle mock-model`: a scripted model (docs/mock-model.md)."""

    def __init__(self, script: dict | None = None, options: list[str] | None = None):
        super().__init__(graphs={"none": Path("none")}, options=options)
        self.script = script

    def command(self) -> list[str]:
        command = [str(binary()), "mock-model", "--port", str(self.port), *self.options]
        if self.script is not None:
            file = self.folder / "script.json"
            file.write_text(json.dumps(self.script))
            command.append(str(file))
        return command

    def environment(self) -> dict[str, str]:
        return clean_environment()

    def answers(self) -> bool:
        try:
            return httpx.get(self.url + "/mock/requests", timeout=30).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def base_url(self) -> str:
        """The value for `base_url` or OPENAI_BASE_URL."""
        return self.url + "/v1"

    def requests(self, path: str | None = None) -> list[dict]:
        """Returns its requests, oldest first: {"method", "path", "headers", "body", …}."""
        found = httpx.get(self.url + "/mock/requests", timeout=60).json()
        return [entry for entry in found if path is None or entry["path"] == path]

    def configurable(self, **more) -> dict:
        """Returns a run's configurable that selects this model."""
        return {"base_url": self.base_url, "custom_model_name": "mock", "custom_api_key": "sk-mock", **more}


class Process:
    """Any other program that a test needs; ready when it prints a matching line."""

    def __init__(self, command: list[str], ready: str, env: dict | None = None, cwd: Path | None = None):
        self.command, self.ready, self.cwd = command, re.compile(ready), cwd
        self.env = clean_environment() | (env or {})
        self.lines: list[str] = []
        self.process: subprocess.Popen | None = None
        self.found: re.Match | None = None

    def start(self) -> Process:
        self.process = subprocess.Popen(
            self.command, env=self.env, cwd=self.cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        threading.Thread(target=self.read, daemon=True).start()
        wait_for(lambda: self.found or self.process.poll() is not None, START_SECONDS, f"{self.command}: {self.lines}")
        if not self.found:
            raise RuntimeError(f"{self.command} ended with {self.process.returncode}\n" + "\n".join(self.lines))
        return self

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.found = self.found or self.ready.search(line)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()


def collect(make):
    """For fixtures: `make` creates things, which are started, and stopped in reverse order."""
    made = []

    def create(*arguments, **options):
        thing = make(*arguments, **options)
        made.append(thing)
        return thing.start()

    yield create
    try:
        for thing in reversed(made):
            thing.stop()
    finally:
        for thing in made:
            getattr(thing, "remove", thing.stop)()


__all__ = ["Heddle", "Mock", "Process", "binary", "clean_environment", "collect", "free_port", "wait_for"]
