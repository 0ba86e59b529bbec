"""A private PostgreSQL server, which tests may stop, freeze and start again.

with Postgres() as postgres:
    server = PostgresServer(postgres)
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

from server import ROOT, Server

SHOW = 'printf "%s\\n" "$HEDDLE_TEST_PG_URL" "$HEDDLE_TEST_PGBOUNCER_URL" "$HEDDLE_TEST_PG_RESTART" "$HEDDLE_TEST_PG_LOG"; exec cat'


class Postgres:
    def __enter__(self) -> Postgres:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_TEST_PG")}
        command = [ROOT / "tests/lib/with-postgres", "sh", "-c", SHOW]
        self.process = subprocess.Popen(command, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url, self.bouncer_url, self.restart_program, log = (
            self.process.stdout.readline().strip() for _ in range(4)
        )
        self.data = Path(log).parent / "data"
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait()

    def sql(self, text: str) -> str:
        psql = shutil.which("psql") or sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"))[-1]
        command = [psql, self.url, "-v", "ON_ERROR_STOP=1", "-Atqc", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def processes(self) -> list[int]:
        """The postmaster and its children; root can read the file although the folder belongs to
        postgres."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        return [postmaster, *map(int, children)]

    def freeze(self) -> None:
        """The server stops responding, but connections stay open."""
        self.frozen = self.processes()
        for pid in self.frozen:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.frozen:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Stops at once, as in a crash: connections break, and new ones are refused."""
        os.kill(self.processes()[0], signal.SIGQUIT)
        while (self.data / "postmaster.pid").exists():
            pass

    def start(self) -> None:
        subprocess.run([self.restart_program], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class PostgresServer(Server):
    def __init__(self, postgres: Postgres, url: str | None = None, options: list[str] | None = None, timeout: int = 10):
        super().__init__(options=options)
        self.postgres = postgres
        self.schema = f"api_{uuid.uuid4().hex[:16]}"
        self.store = f"{url or postgres.url}?schema={self.schema}&timeout={timeout}"

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--store") + 1] = self.store
        return command

    def sql(self, text: str) -> str:
        return self.postgres.sql(f"SET search_path TO {self.schema}; {text}")

    def holders(self) -> str:
        return self.sql("SELECT convert_from(body, 'UTF8') FROM servers")
