"""Generated requests from /openapi.json, by schemathesis, against a real server.

    python3 tests/api/fuzz.py                       what CI runs: a minute (longer on a slow machine), always the same seed
    python3 tests/api/fuzz.py --seconds 3600 --seed 7
    python3 tests/api/fuzz.py --include-path /assistants/search …   more arguments go to schemathesis

Every response must conform to the document: never a 5xx, the right type and members. At the end the
server must stop cleanly, and the sanitizers must have reported nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

LIB = Path(__file__).resolve().parent / "lib"
sys.path.insert(0, str(LIB))

import httpx  # noqa: E402
from server import GRAPHS, Server  # noqa: E402

QUICK = ("echo", "loop", "failing", "approval", "nested", "fanout", "tools")
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip
LEAST = 100  # responses, at least, also on a slow machine
PATIENCE = 960  # seconds, the limit for them
# A thread's stream has no end.
ENDLESS = "/threads/{thread_id}/stream"


def command(url: str, seconds: int, options: argparse.Namespace, more: list[str]) -> list[str]:
    return [
        str(Path(sys.executable).parent / "schemathesis"), "--no-color", "run", url + "/openapi.json",
        "--checks", ",".join(CHECKS), "--exclude-path", ENDLESS, "--workers", "1",
        "--seed", str(options.seed), "--max-time", str(seconds), "--request-timeout", "120",
        "--suppress-health-check", "all", "--generation-database", "none", "--continue-on-failure",
        "--warnings", "off", *more,
    ]  # fmt: skip


def environment(options: argparse.Namespace) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(LIB),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCHEMATHESIS_HOOKS": "fuzz_hooks",
        "HEDDLE_FUZZ_GRAPHS": ",".join(QUICK),
        "HEDDLE_FUZZ_SEED": str(options.seed),
        "PYTHONHASHSEED": "0",  # also fixes the order of sets
    }


def answers_of(server: Server) -> dict[str, int]:
    found = httpx.get(server.url + "/metrics?format=json", timeout=60).json()["heddle_http_responses_total"]
    print("answers:", ", ".join(f"{count} {kind}" for kind, count in found.items() if count))
    return found


def run(server: Server, options: argparse.Namespace, more: list[str]) -> int:
    """Starts over with more time when the run got too few responses."""
    seconds = options.seconds
    while True:
        made = command(server.url, seconds, options, more)
        status = subprocess.run(made, env=environment(options), cwd=server.folder).returncode
        server.check_log()
        assert server.process.poll() is None, f"the server ended\n{server.tail()}"
        answers = answers_of(server)
        assert answers["5xx"] == 0, f"there were answers of 5xx\n{server.tail()}"
        if status != 0 or (sum(answers.values()) >= LEAST and answers["2xx"] > 0 and answers["4xx"] > 0):
            return status
        seconds *= 2
        assert seconds <= max(PATIENCE, options.seconds), "too little was tried"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options, more = parser.parse_known_args()
    with Server(graphs={name: GRAPHS / f"{name}.json" for name in QUICK}) as server:
        return run(server, options, more)


if __name__ == "__main__":
    sys.exit(main())
