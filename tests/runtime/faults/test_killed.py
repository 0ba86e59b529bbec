"""Workers that are killed, in each phase of a run: the run continues from its last checkpoint at
another worker."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from plain import events
from programs import wait_for
from project import lives

HERE = Path(__file__).resolve().parent
ALL = ["first", "left", "right", "end"]


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=HERE / "graphs", options=["--runtime-workers", "2"])


class Began:
    """A run on a new thread, in the background."""

    def __init__(self, server, graph: str, folder: Path, **configurable):
        self.server, self.thread = server, server.thread()
        self.pool = ThreadPoolExecutor(1)
        self.result = self.pool.submit(
            server.wait, graph, {"said": []}, self.thread, {"folder": str(folder), **configurable}
        )

    def end(self) -> dict:
        return self.result.result(timeout=120)

    def record(self) -> dict:
        return self.server.ask("GET", f"/threads/{self.thread}/runs")[0]


def times(folder: Path, name: str) -> int:
    return len(list(folder.glob(f"{name}.[0-9]*")))


def kill(folder: Path, name: str) -> None:
    """The worker of the last start of that node."""
    last = max(folder.glob(f"{name}.[0-9]*"), key=lambda path: int(path.suffix[1:]))
    os.kill(int(wait_for(last.read_text, what="its process")), signal.SIGKILL)


def test_before_the_first_checkpoint(server, tmp_path):
    (tmp_path / "make.waits").touch()
    run = Began(server, "made", tmp_path)
    wait_for(lambda: times(tmp_path, "make"), what="the factory")
    assert server.state(run.thread)["values"] in ({}, None)
    kill(tmp_path, "make")
    (tmp_path / "make.go").touch()
    assert run.end()["said"] == ALL
    assert [times(tmp_path, name) for name in ("make", *ALL)] == [2, 1, 1, 1, 1]
    assert server.state(run.thread)["metadata"]["run_attempt"] == 2


def test_in_the_middle_of_a_superstep(server, tmp_path):
    """The finished sibling is not run again."""
    (tmp_path / "right.waits").touch()
    run = Began(server, "steps", tmp_path)
    wait_for(lambda: times(tmp_path, "right") and times(tmp_path, "left"), what="the second superstep")
    wait_for(lambda: any(task["result"] for task in server.state(run.thread)["tasks"]), what="the writes of `left`")
    kill(tmp_path, "right")
    (tmp_path / "right.go").touch()
    assert run.end()["said"] == ALL
    assert [times(tmp_path, name) for name in ALL] == [1, 1, 2, 1]
    assert run.record()["status"] == "success"
    history = server.ask("POST", f"/threads/{run.thread}/history", json={})
    assert [state["metadata"]["step"] for state in history] == [3, 2, 1, 0, -1]
    assert all(
        newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
        for newer, older in zip(history, history[1:])
    )


def test_in_typescript(server, tmp_path):
    (tmp_path / "end.waits").touch()
    run = Began(server, "typed", tmp_path)
    wait_for(lambda: times(tmp_path, "end"), what="the second superstep")
    wait_for(lambda: server.state(run.thread)["next"] == ["end"], what="its checkpoint")
    kill(tmp_path, "end")
    (tmp_path / "end.go").touch()
    assert run.end()["said"] == ["first", "end"]
    assert [times(tmp_path, name) for name in ("first", "end")] == [1, 2]


def test_while_streaming(server, tmp_path):
    """A reader sees both attempts, and the end."""
    (tmp_path / "middle.waits").touch()
    thread, seen = server.thread(), []
    body = {
        "assistant_id": "chatty", "input": {"said": []}, "stream_mode": ["custom", "values"],
        "config": {"configurable": {"folder": str(tmp_path), "count": 20}},
    }  # fmt: skip
    with server.client() as client, client.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if '"number":10' in text and not seen:
                seen.append(times(tmp_path, "middle"))
                kill(tmp_path, "middle")
                (tmp_path / "middle.go").touch()
    told = events(text)
    numbers = [data["number"] for name, data, _ in told if name == "custom"]
    assert seen == [1] and numbers == [*range(11), *range(20)]
    assert [data for name, data, _ in told if name == "values"][-1]["said"] == ["talk"]
    assert [data["attempt"] for name, data, _ in told if name == "metadata"][-1] == 2
    assert told[-1][1]["status"] == "success"


def test_after_the_last_checkpoint(server, tmp_path):
    (tmp_path / "last.waits").touch()
    run = Began(server, "last", tmp_path)
    assert run.end()["said"] == ALL
    assert (tmp_path / "last.killed").exists()
    assert [times(tmp_path, name) for name in ALL] == [1, 1, 1, 1]


def begin_two(server, folder: Path) -> list[tuple[Began, Path, int]]:
    """Two waiting runs: each with its folder and its worker."""
    found = []
    for number in (1, 2):
        own = folder / str(number)
        own.mkdir(parents=True)
        (own / "first.waits").touch()
        run = Began(server, "steps", own)
        pid = wait_for(lambda: (own / "first.1").exists() and (own / "first.1").read_text(), what="a run")
        found.append((run, own, int(pid)))
    return found


def let_go(runs) -> list[dict]:
    for _, folder, _ in runs:
        (folder / "first.go").touch()
    return [run.end() for run, _, _ in runs]


def test_only_its_own_runs(server, tmp_path):
    """A run at the other worker is not affected."""
    wait_for(lambda: server.ask("GET", "/info")["workers"]["python"]["ready"] >= 2, 120, "both workers")
    for number in range(100):  # until each has one
        runs = begin_two(server, tmp_path / str(number))
        if runs[0][2] != runs[1][2]:
            break
        let_go(runs)
    os.kill(runs[0][2], signal.SIGKILL)
    assert [end["said"] for end in let_go(runs)] == [ALL, ALL]
    assert [server.state(run.thread)["metadata"]["run_attempt"] for run, _, _ in runs] == [2, 1]


def test_a_run_that_makes_progress_continues_after_any_number_of_losses(server, tmp_path):
    """Losses of workers in different steps are not counted together."""
    for name in ("first", "right", "end"):
        (tmp_path / f"{name}.waits").touch()
    run = Began(server, "steps", tmp_path)
    for name, losses in (("first", 1), ("right", 2), ("end", 1)):
        for attempt in range(1, losses + 1):
            wait_for(lambda: times(tmp_path, name) == attempt, what=f"attempt {attempt} of {name}")
            kill(tmp_path, name)
        wait_for(lambda: times(tmp_path, name) == losses + 1, what=f"the last attempt of {name}")
        (tmp_path / f"{name}.go").touch()
    assert run.end()["said"] == ALL
    assert run.record()["status"] == "success"
    assert server.state(run.thread)["metadata"]["run_attempt"] == 5


def test_every_time(server, tmp_path):
    """After three attempts in the same step it fails with the reason."""
    (tmp_path / "first.waits").touch()
    run = Began(server, "steps", tmp_path)
    for attempt in (1, 2, 3):
        wait_for(lambda: times(tmp_path, "first") == attempt, what=f"attempt {attempt}")
        kill(tmp_path, "first")
    error = run.end()["__error__"]
    assert "signal 9" in error["message"], error
    assert run.record()["status"] == "error"
    (tmp_path / "first.go").touch()
    assert server.wait("steps", None, run.thread, {"folder": str(tmp_path)})["said"] == ALL


def test_again_and_again(server, tmp_path):
    """Workers are killed at random while many runs are running; each succeeds, or fails after three
    attempts."""
    over = threading.Event()

    def killer():
        choose = random.Random(7)
        for _ in range(4):
            if over.wait(1.5):
                return
            if pids := server.workers():
                os.kill(choose.choice(pids), signal.SIGKILL)

    thread = threading.Thread(target=killer)
    thread.start()
    folders = [tmp_path / str(number) for number in range(24)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(lambda folder: Began(server, "steps", folder).end(), folders))
    over.set()
    thread.join()
    for end in ended:
        assert end.get("said") == ALL or "signal 9" in end["__error__"]["message"], end
    assert sum(end.get("said") == ALL for end in ended) >= 16


def test_the_server(server, tmp_path):
    """kill -9 of the server: its workers end by themselves, and the next server continues the runs."""
    (tmp_path / "right.waits").touch()
    thread = server.thread()
    body = {"assistant_id": "steps", "input": {"said": []}, "config": {"configurable": {"folder": str(tmp_path)}}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)
    wait_for(lambda: times(tmp_path, "right"), what="the second superstep")
    wait_for(lambda: any(task["result"] for task in server.state(thread)["tasks"]), what="the writes of `left`")
    workers = server.ready(count=2)
    server.kill()
    for pid in workers:
        wait_for(lambda: not lives(pid), what="the end of the workers")
    (tmp_path / "right.go").touch()
    server.restart()
    ended = server.ask("GET", f"/threads/{thread}/runs/{run['run_id']}/join")
    assert ended["said"] == ALL
    assert [times(tmp_path, name) for name in ALL] == [1, 1, 2, 1]


def test_the_server_ends_cleanly(server, tmp_path):
    """SIGTERM during a run: the workers end, and the run continues later."""
    (tmp_path / "first.waits").touch()
    thread = server.thread()
    body = {"assistant_id": "steps", "input": {"said": []}, "config": {"configurable": {"folder": str(tmp_path)}}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)
    wait_for(lambda: times(tmp_path, "first"), what="the run")
    workers = server.ready(count=2)
    server.stop()
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    (tmp_path / "first.go").touch()
    server.restart()
    assert server.ask("GET", f"/threads/{thread}/runs/{run['run_id']}/join")["said"] == ALL
