"""A worker ends when its server is silent for the lease that hello named: the real workers, and a
server that is this test."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import uuid

import pytest
from heddle.runtime import frames
from programs import wait_for
from project import NODE, VENV
from scripted import Scripted

LEASE_MS = 1000
SILENT = 3  # the worker's exit status
PYTHON = """
import asyncio, time, urllib.request
from typing import TypedDict
from langgraph.graph import StateGraph, START, END

class State(TypedDict):
    url: str
    blocks: bool

def call(url):
    urllib.request.urlopen(url).read()

async def work(state):
    while True:
        if state["blocks"]:
            call(state["url"])
            time.sleep(0.05)
        else:
            await asyncio.to_thread(call, state["url"])
            await asyncio.sleep(0.05)

graph = StateGraph(State).add_node("work", work).add_edge(START, "work").add_edge("work", END).compile()
"""
JS = """
import { Annotation, StateGraph, START, END } from "@langchain/langgraph";

const State = Annotation.Root({ url: Annotation(), blocks: Annotation() });

async function work({ url }) {
    for (;;) {
        await (await fetch(url)).text();
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

export const graph = new StateGraph(State)
    .addNode("work", work).addEdge(START, "work").addEdge("work", END).compile();
"""


class Served:
    """Serves one worker with signs of life, until the test freezes it."""

    def __init__(self, folder, runtime: str, lease_ms: int | None = LEASE_MS):
        self.folder, self.runtime, self.lease_ms = folder, runtime, lease_ms
        path = str(folder / "socket")
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.listening.settimeout(60)
        self.lock, self.is_ready = threading.Lock(), threading.Event()
        self.is_frozen = False
        name = "chat.py" if runtime == "python" else "chat.mjs"
        (folder / name).write_text(PYTHON if runtime == "python" else JS)
        (folder / "node_modules").symlink_to(NODE / "node_modules")
        self.graph = f"./{name}:graph"
        command = (
            [str(VENV / "bin" / "python"), "-m", "heddle.runtime"]
            if runtime == "python"
            else ["node", str(NODE / "node_modules/heddle/dist/runtime/main.js")]
        )
        environment = {**os.environ, "HEDDLE_RUNTIME_SOCKET": path, "HEDDLE_RUNTIME_KEY": "k"}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)
        self.link, _ = self.listening.accept()
        threading.Thread(target=self.read, daemon=True).start()
        assert self.is_ready.wait(120)
        threading.Thread(target=self.beat, daemon=True).start()

    def send(self, kind: int, number: int, head: dict) -> None:
        with self.lock:
            self.link.sendall(b"".join(frames.pack(kind, number, json.dumps(head).encode())))

    def beat(self) -> None:
        while not self.is_frozen:
            try:
                self.send(frames.GO, 0, {})
            except OSError:
                return
            time.sleep(LEASE_MS / 5000)

    def read(self) -> None:
        reader = frames.Reader()
        try:
            while data := self.link.recv(1 << 16):
                for frame in reader.feed(data):
                    self.take(frame)
        except OSError:
            pass

    def take(self, frame) -> None:
        head = json.loads(frame.head or b"{}")
        if frame.kind != frames.CALL or self.is_frozen:
            return
        answer = {"tuple": None, "tuples": [], "results": []}
        if head["op"] == "hello":
            graphs = {"chat": {"path": self.graph}}
            project = {"folder": str(self.folder), "graphs": graphs, "dependencies": ["."]}
            answer = {"protocol": 1, "version": head["version"], "worker": 1, "project": project}
            answer |= {"lease_ms": self.lease_ms} if self.lease_ms else {}
        self.send(frames.ANSWER, frame.number, answer)
        if head["op"] == "ready":
            assert "error" not in head["graphs"]["chat"], head
            self.is_ready.set()

    def run(self, url: str, blocks: bool) -> None:
        config = {"configurable": {"thread_id": "t"}, "metadata": {}, "tags": []}
        self.send(
            frames.CALL, 7,
            {"op": "run", "graph": "chat", "run_id": str(uuid.uuid4()), "thread_id": "t", "assistant_id": "a", "attempt": 1,
             "input": {"url": url, "blocks": blocks}, "config": config, "modes": [], "subgraphs": False,
             "durability": "async", "checkpoint_id": None, "checkpoint_ns": "", "checkpoint_map": None},
        )  # fmt: skip

    def end(self) -> None:
        self.is_frozen = True
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.link.close()
        self.listening.close()


@pytest.fixture
def served(tmp_path):
    made = []

    def create(runtime: str, **more) -> Served:
        made.append(Served(tmp_path, runtime, **more))
        return made[-1]

    yield create
    for each in made:
        each.end()


@pytest.fixture
def counter():
    with Scripted(lambda peer, request: peer.answer(200, {})) as server:
        yield server


CASES = pytest.mark.parametrize(
    ("runtime", "blocks"), [("python", False), ("python", True), ("js", False)], ids=["python", "python, blocked", "js"]
)


@CASES
def test_a_worker_stops_its_run_when_the_server_is_silent(served, counter, runtime, blocks):
    server = served(runtime)
    server.run(counter.url, blocks)
    wait_for(lambda: counter.requests, what="the run")
    time.sleep(3 * LEASE_MS / 1000)  # longer than a lease: the server lives
    assert server.process.poll() is None
    server.is_frozen = True
    began = time.monotonic()
    assert server.process.wait(60) == SILENT
    assert time.monotonic() - began >= 0.7 * LEASE_MS / 1000
    seen = len(counter.requests)
    time.sleep(0.3)
    assert len(counter.requests) == seen


@pytest.mark.parametrize("runtime", ["python", "js"])
def test_a_worker_that_was_stopped_itself_goes_on(served, counter, runtime):
    server = served(runtime)
    server.run(counter.url, False)
    wait_for(lambda: counter.requests, what="the run")
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(3 * LEASE_MS / 1000)
    server.process.send_signal(signal.SIGCONT)
    seen = len(counter.requests)
    wait_for(lambda: len(counter.requests) > seen + 5, what="more calls")
    time.sleep(2 * LEASE_MS / 1000)
    assert server.process.poll() is None


@pytest.mark.parametrize("runtime", ["python", "js"])
def test_without_a_lease_a_worker_waits_for_its_server(served, counter, runtime):
    server = served(runtime, lease_ms=None)
    server.run(counter.url, False)
    wait_for(lambda: counter.requests, what="the run")
    server.is_frozen = True
    time.sleep(3 * LEASE_MS / 1000)
    assert server.process.poll() is None
