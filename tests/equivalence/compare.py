#!/usr/bin/env python3
"""Runs scenarios on several sides and compares the results.

    compare.py [--sides SIDE,…] [--repeat N] [NAME…]

The reference is graph.py, run by LangGraph with its in-memory saver. The sides:

    again     the same in another process: shows that the reference is deterministic
    heddle    graph.py with HeddleSaver on SQLite: shows that the saver is correct
    json      graph.json run by LangGraph: shows that both files are the same graph
    native    graph.json run by Heddle's engine: HEDDLE_SCENARIO, a command in which {}
              is the scenario's directory (default: build/heddle run --scenario {} --json)

Prints a line for each comparison, the first difference of each failure, and at the end "N passed, N
failed".
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from normalise import normalise
from run_langgraph import load_scenario, play

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
SIDES = ("again", "heddle", "json", "native")
COMMAND = "build/heddle run --scenario {} --json"
TIMEOUT = 60


# Differences.


def describe(value, limit=600):
    shown = json.dumps(value, ensure_ascii=False, indent=1) if value is not ABSENT else "(nothing)"
    return shown if len(shown) <= limit else shown[:limit] + " …"


class Absent:
    pass


ABSENT = Absent()


def keys(left, right):
    if isinstance(left, dict):
        return list(dict.fromkeys([*left, *right]))
    return range(max(len(left), len(right)))


def at(value, key):
    if isinstance(value, dict):
        return value.get(key, ABSENT)
    return value[key] if key < len(value) else ABSENT


def first_difference(left, right, path=()):
    """Returns the path of the first difference in the order of the left side, or None."""
    if type(left) is not type(right) or not isinstance(left, (dict, list)):
        same = left == right and isinstance(left, bool) == isinstance(right, bool)
        return None if same else path
    for key in keys(left, right):
        found = first_difference(at(left, key), at(right, key), (*path, key))
        if found is not None:
            return found
    return None


def follow(value, path):
    for key in path:
        value = at(value, key) if isinstance(value, (dict, list)) else ABSENT
    return value


def show_path(path):
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def outline(event):
    """Returns one line for an event, to locate a difference in the stream."""
    data = event["data"]
    what = ""
    if isinstance(data, dict):
        what = data.get("name") or data.get("type") or ", ".join(data)
    return f"{'|'.join(event['ns']) or '(root)'} {event['mode']} {what}"


def report(left, right):
    """Returns a readable description of the first difference, or None."""
    path = first_difference(left, right)
    if path is None:
        return None
    lines = [f"first difference at {show_path(path)}"]
    if "events" in path[:3] and len(path) > 3:
        index = path[3]
        for name, side in (("reference", left), ("side", right)):
            events = follow(side, path[:3])
            lines.append(f"  events of the {name} around it:")
            for number in range(max(0, index - 2), min(len(events), index + 3)):
                mark = ">" if number == index else " "
                lines.append(f"   {mark} {number}: {outline(events[number])}")
    for name, side in (("reference", left), ("side", right)):
        lines.append(f"  {name}: {describe(follow(side, path))}")
    context = follow(left, path[:-1])
    if isinstance(context, dict):
        lines.append(f"  within (reference): {describe(context)}")
    return "\n".join(lines)


# The sides.


class Server(ThreadingHTTPServer):
    """Echoes every request; for graphs with http nodes."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path, _, status = self.path.partition("?status=")
            text = json.dumps(
                {"method": self.command, "path": path, "body": json.loads(body) if body else None}
            ).encode()
            self.send_response(int(status or 200))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *arguments):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()
        os.environ["HEDDLE_TEST_SERVER"] = "http://127.0.0.1:%d" % self.server_address[1]


def run_native(folder):
    template = os.environ.get("HEDDLE_SCENARIO", COMMAND)
    with tempfile.TemporaryDirectory() as temporary:
        # A copy with the actual address of the test server.
        copy = Path(temporary, folder.name)
        copy.mkdir()
        (copy / "graph.json").write_text((folder / "graph.json").read_text())
        (copy / "scenario.json").write_text(json.dumps(load_scenario(folder)))
        words = [word.replace("{}", str(copy)) for word in shlex.split(template)]
        done = subprocess.run(words, cwd=HERE.parents[1], capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(words)}: status {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


class Other:
    """A second process that runs references: each Python process orders sets differently."""

    process = None

    @classmethod
    def run(cls, folder):
        if cls.process is None:
            # Random here too, even if this process has a fixed hash seed.
            cls.process = subprocess.Popen(
                [sys.executable, HERE / "run_langgraph.py", "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": "random"},
            )
        cls.process.stdin.write(f"{folder}\n")
        cls.process.stdin.flush()
        document = json.loads(cls.process.stdout.readline())
        if "failure" in document:
            raise RuntimeError(document["failure"])
        return document


def run_side(side, folder):
    if side == "native":
        return normalise(run_native(folder))
    if side == "again":
        return normalise(Other.run(folder))
    saver = "heddle" if side == "heddle" else "memory"
    graph = "json" if side == "json" else "python"
    return normalise(asyncio.run(play(folder, saver, graph)))


def attempt(name, side, reference):
    """Returns None if the side agrees with the reference, otherwise the difference."""
    try:
        return report(reference, run_side(side, CORPUS / name))
    except Exception as error:
        return f"{error!r}\n{traceback.format_exc()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sides", default="again,heddle,json")
    parser.add_argument("--repeat", type=int, default=1, help="compare each side so often")
    options = parser.parse_args()
    sides = options.sides.split(",")
    if set(sides) - set(SIDES):
        parser.error(f"sides are {', '.join(SIDES)}")
    names = options.names or sorted(path.parent.name for path in CORPUS.glob("*/scenario.json"))
    Server()
    passed = failed = 0
    for name in names:
        started = time.monotonic()
        try:
            reference = run_side("reference", CORPUS / name)
        except Exception as error:
            failed += 1
            print(f"failed: {name}: the reference: {error!r}\n{traceback.format_exc()}")
            continue
        for side in sides * options.repeat:
            problem = attempt(name, side, reference)
            passed += problem is None
            failed += problem is not None
            if problem:
                print(f"failed: {name}: {side}: {problem}")
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
