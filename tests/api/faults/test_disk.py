"""A full disk: writes that cannot be stored are refused with a clear error; the server does not
crash, loses nothing, and continues when there is space again."""

import contextlib
import subprocess
import tempfile
from pathlib import Path

import httpx
import pytest
from gate import Gate
from load import comes_to_rest, eventually, is_usable
from plain import human, texts
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

SIZE = "12m"


@pytest.fixture
def small_disk():
    """A small file system, if mounting is allowed."""
    with tempfile.TemporaryDirectory(prefix="heddle-small-") as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", folder]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


class SmallServer(Server):
    def __init__(self, disk: Path):
        super().__init__()
        self.disk = disk

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--store") + 1] = f"sqlite:{self.disk}/heddle.db"
        return command


def fill(disk: Path) -> None:
    with (disk / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while ballast.write(bytes(size)):
                    pass


def is_full(http: httpx.Client) -> bool:
    """Sends a request that writes to the store."""
    answer = http.post("/threads", json={"metadata": {"text": "x" * 20_000}})
    if answer.status_code == 200:
        return False
    assert answer.status_code in (503, 507), answer.text
    assert set(answer.json()) == {"detail"} and len(answer.json()["detail"]) > 10, answer.text
    return True


def test_a_full_disk(small_disk):
    with Gate() as gate, SmallServer(small_disk) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        kept = http.post("/threads", json={}).json()["thread_id"]
        busy = http.post("/threads", json={}).json()["thread_id"]
        say = {"assistant_id": "echo", "input": human("before")}
        assert http.post(f"/threads/{kept}/runs/wait", json=say).status_code == 200
        # One run is running while the disk fills, and one is queued behind it.
        runs = [
            http.post(f"/threads/{busy}/runs", json=body).json()
            for body in (
                gate.body(durability="sync"),
                {"assistant_id": "nap", "input": {"ms": 1}, "durability": "sync"},
            )
        ]
        eventually(lambda: gate.arrived)
        fill(small_disk)
        eventually(lambda: is_full(http))
        answer = http.post(f"/threads/{kept}/runs/wait", json=say)
        assert answer.status_code in (503, 507) or "__error__" in answer.json(), answer.text
        # Stored state can be read, and the server is healthy.
        assert texts(http.get(f"/threads/{kept}/state").json()["values"])[0] == "before"
        assert http.get("/ok").json() == {"ok": True}
        # A health check of the database reports the full disk, without its path.
        answer = http.get("/ok?check_db=1")
        assert answer.status_code == 500 and "space" in answer.text and str(small_disk) not in answer.text
        # The run now hits the full disk: it waits, and the server logs it.
        gate.open()
        eventually(lambda: "writes wait for up to" in server.log.read_text())
        (small_disk / "ballast").unlink()
        eventually(lambda: not is_full(http))
        eventually(lambda: http.get("/ok?check_db=1").status_code == 200)
        comes_to_rest(server)
        for run in runs:
            assert http.get(f"/threads/{busy}/runs/{run['run_id']}").json()["status"] == "success"
        for thread in (kept, busy):
            is_usable(http, thread)
        server.stop()
        server.restart()
        for thread in (kept, busy):
            is_usable(http, thread)


def test_a_full_disk_does_not_keep_it_from_ending(small_disk):
    """SIGTERM while a run waits for space: the next server resumes it."""
    with Gate() as gate, SmallServer(small_disk) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        run = http.post(f"/threads/{thread}/runs", json=gate.body()).json()
        eventually(lambda: gate.arrived)
        fill(small_disk)
        gate.open()
        eventually(lambda: "writes wait for up to" in server.log.read_text())
        server.stop()
        (small_disk / "ballast").unlink()
        server.restart()
        comes_to_rest(server)
        assert http.get(f"/threads/{thread}/runs/{run['run_id']}").json()["status"] == "success"
        is_usable(http, thread)
