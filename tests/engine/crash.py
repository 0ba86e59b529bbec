#!/usr/bin/env python3
"""Kills runs of graphs at random moments and continues them.

    crash.py [--heddle PROGRAM] [--seed N] [--seconds N] [NAME…]

A child process (`heddle run`, SQLite) runs a graph and is killed with SIGKILL; the thread is
continued in another one, which may be killed too, until the run has ended. Then
everything that is stored (values, next, tasks, every checkpoint of every namespace)
must equal that of a run which nobody disturbed.

Nodes ask a server that counts. A task whose writes were stored when the process died must
not ask again; with durability sync only a task that was at work may.

The graphs: those of own.py, and every one of tests/equivalence/corpus with its plain nodes
replaced by ones that ask the server. All of them are done once in an order that the seed
decides, and again while there is time; those that there was no time for are named.
Ends with "N passed, N failed".
"""

import argparse
import collections
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "equivalence" / "corpus"
sys.path.insert(0, str(HERE.parent / "equivalence"))

from compare import report  # noqa: E402
from normalise import ID, NULL_TASK, normalise  # noqa: E402
from own import GRAPHS  # noqa: E402

TIMEOUT = 60
MAX_KILLS = 12


class Failure(Exception):
    pass


# The server.


class Server(ThreadingHTTPServer):
    """Counts: each request is POST /RUN/NODE with a body that tells the task from others."""

    daemon_threads = True
    request_queue_size = 256

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            _, run, node = self.path.split("/")
            body = ID.sub("?", body)
            self.server.count(run, node, body)
            time.sleep(self.server.delay(node, body))
            try:
                self.answer(json.dumps({"path": self.path}).encode())
            except OSError:
                pass  # who asked was killed

        def do_GET(self):
            self.answer(json.dumps({"method": "GET", "path": self.path, "body": None}).encode())

        def answer(self, text):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.lock = threading.Condition()
        self.requests = collections.defaultdict(list)  # run to [(node, body)]
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        os.environ["HEDDLE_TEST_SERVER"] = self.url
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # connections of killed processes

    def count(self, run, node, body):
        with self.lock:
            self.requests[run].append((node, body))
            self.lock.notify_all()

    def seen(self, run):
        with self.lock:
            return list(self.requests[run])

    def wait(self, run, number, child):
        """Until a run has asked so often, or its process ends, or for a while."""
        with self.lock:
            for _ in range(500):
                if len(self.requests[run]) >= number or child.poll() is not None:
                    return
                self.lock.wait(0.01)

    @staticmethod
    def delay(node, body):
        """How long a task takes: the same for every request of it."""
        if node.startswith("slow"):
            return 1.5
        return 0.001 * (sum(body.encode()) % 7)


# The graphs of the corpus, with side effects.


def counted(graph, url, run):
    """The declaration with each plain `set` node asking the server first."""
    graph = json.loads(json.dumps(graph))
    for name, node in graph["nodes"].items():
        if node["kind"] != "set" or "goto" in node or "graph" in node:
            continue
        node["kind"] = "http"
        node["method"] = "POST"
        node["url"] = f"{url}/{run}/{name}"
        seen = node.get("input", graph["state"])
        node["body"] = {"state": {channel: "{{%s}}" % channel for channel in seen},
                        "update": node.get("update")}
    for name, inner in graph.get("graphs", {}).items():
        graph["graphs"][name] = counted(inner, url, run)
    return graph


def all_nodes(graph):
    yield from graph["nodes"].values()
    for inner in graph.get("graphs", {}).values():
        yield from all_nodes(inner)


# One thread of work, disturbed or not.


class Store:
    """A database and the directory that `heddle run --scenario` wants."""

    def __init__(self, program, folder, graph, is_relaxed=True):
        self.program = program
        self.folder = folder
        folder.mkdir()
        # Processes die, not the machine; but waiting for the disk shows who does not wait for it.
        self.url = f"sqlite:{folder}/h.db" + ("?durability=relaxed" if is_relaxed else "")
        (folder / "graph.json").write_text(json.dumps(graph))

    def scenario_command(self, steps):
        (self.folder / "scenario.json").write_text(json.dumps({"steps": steps}))
        return [self.program, "run", "--scenario", str(self.folder), "--json",
                "--store", self.url]

    def perform(self, steps):
        """The document of steps that are not disturbed."""
        done = subprocess.run(self.scenario_command(steps), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
        if done.returncode != 0:
            raise Failure(f"status {done.returncode}: {done.stderr.decode()[-500:]}")
        document = json.loads(done.stdout)
        document["scenario"] = ""
        return document

    def observe(self, threads, step=None):
        """Everything that is stored, as it is; the record of a step that comes first."""
        steps = [] if step is None else [step]
        for thread in threads:
            steps.append({"do": "state", "thread": thread, "subgraphs": True})
            steps.append({"do": "history", "thread": thread})
        document = self.perform(steps)
        record = None if step is None else document["steps"].pop(0)
        return document, record


def disturb(command, delay, wait=None):
    """Runs a command and kills it after so many seconds; whether it had ended before."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            if wait:
                wait(child)
            child.wait(delay)
            return True
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            return False


def unfinished(state):
    """The names of tasks without a stored result, those of subgraphs included."""
    names = set()
    for task in (state or {}).get("tasks", ()):
        if task["result"] is None:
            names.add(task["name"])
        if isinstance(task["state"], dict) and "tasks" in task["state"]:
            names |= unfinished(task["state"])
    return names


def plain(document):
    """Normalised, without the note that a run was continued: that alone may differ."""
    document = normalise(document)
    for spaces in document["threads"].values():
        for item in itertools.chain(*spaces.values()):
            item["checkpoint"]["versions_seen"].pop("__interrupt__", None)
    return document


def sent_to(namespaces):
    """Nodes that a command has sent the thread to: not seen as tasks before a step is done."""
    newest = namespaces.get("", [None])[0]
    return {write["channel"].removeprefix("branch:to:")
            for write in (newest["pending_writes"] if newest else ())
            if write["task_id"] == NULL_TASK}


def check_equal(what, wanted, got):
    difference = report(wanted, got)
    if difference:
        raise Failure(f"{what}: {difference}")


# Scenarios of the corpus.

# Why a graph is not disturbed, or what of it cannot be compared.
SKIPPED = {
    "fork": "a step refers to what another returned",
    "untracked": "values that are never saved are gone",
}
# A run that goes on begins to count its steps anew.
UNDISTURBED_ERRORS = ("GraphRecursionError",)


class Corpus:
    def __init__(self, bench, name, durability, seed):
        self.bench = bench
        self.name = name
        self.durability = durability
        folder = CORPUS / name
        self.graph = json.loads((folder / "graph.json").read_text())
        text = (folder / "scenario.json").read_text()
        self.steps = json.loads(text.replace("http://heddle.test", bench.server.url))["steps"]
        for step in self.steps:
            if step["do"] in ("stream", "invoke") and step.get("durability") != "exit":
                step["durability"] = durability
        self.steps = [step for step in self.steps if step["do"] not in ("state", "history")]
        if any(node["kind"] == "fail" and "times" in node for node in all_nodes(self.graph)):
            self.steps = self.steps[:1]  # how often it fails is counted in the process
        self.threads = list(dict.fromkeys(step.get("thread", "main") for step in self.steps))
        self.kills = 0
        self.random = random.Random(seed)

    def make(self, kind):
        run = f"{self.name}.{self.durability}.{kind}.{next(self.bench.numbers)}"
        graph = counted(self.graph, self.bench.server.url, run)
        return run, Store(self.bench.program, self.bench.work / run, graph)

    def reference(self):
        """After each step: what is stored, what was asked so far; how long the step took."""
        run, store = self.make("reference")
        outcomes = []
        for number, step in enumerate(self.steps):
            began = time.monotonic()
            document, record = store.observe(self.threads, step)
            took = time.monotonic() - began
            error = record["error"] and record["error"]["type"]
            if error != step.get("error"):
                raise Failure(f"step {number}, undisturbed: {record['error']}")
            asked = collections.Counter(self.bench.server.seen(run))
            outcomes.append((self.comparable(document), asked, took))
        return outcomes

    def comparable(self, document):
        document = plain(document)
        if self.durability != "sync":
            # What a lost step's subgraph had stored stays, under the id of a task that never was.
            document["threads"] = {
                name: {"": [item["checkpoint"]["channel_values"] for item in spaces.get("", [])]}
                for name, spaces in document["threads"].items()}
        return document

    def check(self):
        outcomes = self.reference()
        run, store = self.make("killed")
        allowed = collections.Counter()
        self.stored = store.observe(self.threads)[0]["threads"]
        for number, (step, outcome) in enumerate(zip(self.steps, outcomes)):
            self.stored = self.step(run, store, number, step, outcome, allowed)
            if self.durability == "sync" and '"none"' not in json.dumps(self.graph):
                self.count(run, number, outcome[1], allowed)

    def step(self, run, store, number, step, outcome, allowed):
        wanted = outcome[0]
        can_kill = step["do"] in ("stream", "invoke") and \
            step.get("error") not in UNDISTURBED_ERRORS and \
            "task" not in step.get("from", {})  # its checkpoint map is an argument of the run
        current = step
        for _ in range(self.random.randint(1, 2) if can_kill else 0):
            since = len(self.bench.server.seen(run))
            if self.kill(run, store, current, outcome):
                break
            self.kills += 1
            after, _ = store.observe(self.threads)
            if self.comparable(after) == wanted:
                return after["threads"]  # it had stored everything
            self.allow(after, self.bench.server.seen(run)[since:], step, allowed)
            if after["threads"] != self.stored:
                current = self.go_on(step)
        else:
            after, _ = store.observe(self.threads, current)
            check_equal(f"step {number}, {self.kills} kills so far", wanted,
                        self.comparable(after))
            return after["threads"]
        after, _ = store.observe(self.threads)
        check_equal(f"step {number}, {self.kills} kills so far", wanted, self.comparable(after))
        return after["threads"]

    def kill(self, run, store, step, outcome):
        """Kills it around one of its requests, or at any time; whether it had ended before."""
        server = self.bench.server
        command = store.scenario_command([step])
        left = (outcome[1] - collections.Counter(server.seen(run))).total()
        if left == 0 or self.random.random() < 0.2:
            return disturb(command, self.random.uniform(0, outcome[2]))
        number = len(server.seen(run)) + self.random.randint(1, left)
        return disturb(command, self.random.uniform(0, 0.008),
                       lambda child: server.wait(run, number, child))

    @staticmethod
    def allow(after, requests, step, allowed):
        """Who may ask again: tasks without a stored result; all where nothing is to be stored."""
        pending = set()
        for state in after["steps"][::2]:
            pending |= unfinished(state.get("result"))
        for namespaces in after["threads"].values():
            pending |= sent_to(namespaces)
        for request in requests:
            if request[0] in pending or step.get("durability") == "exit":
                allowed[request] += 1

    @staticmethod
    def go_on(step):
        names = ("do", "thread", "durability", "interrupt_before", "interrupt_after",
                 "recursion_limit")
        return {"input": None, **{name: step[name] for name in names if name in step}}

    def count(self, run, number, wanted, allowed):
        got = collections.Counter(self.bench.server.seen(run))
        for request in wanted | got:
            low, high = wanted[request], wanted[request] + allowed[request]
            if not low <= got[request] <= high:
                raise Failure(f"step {number}: {request[0]} asked {got[request]} times, "
                              f"expected {low} to {high}: {request[1][:200]}")


# Graphs of our own: each request has a key that its task writes to the channel `log`.


def keys_stored(document):
    """The keys of tasks whose writes are stored: in a state, or as writes beside it."""
    text = json.dumps([[item["checkpoint"]["channel_values"], item["pending_writes"]]
                       for spaces in document["threads"].values()
                       for items in spaces.values() for item in items])
    return set(KEY.findall(text))


KEY = re.compile(r"key:[\w.:-]+")


class Own:
    def __init__(self, bench, name, durability, seed):
        self.bench = bench
        self.name = name
        self.durability = durability
        self.kills = 0
        self.random = random.Random(seed)
        self.repeated = 0

    def make(self, kind):
        run = f"{self.name}.{self.durability}.{kind}.{next(self.bench.numbers)}"
        graph, given = GRAPHS[self.name](f"{self.bench.server.url}/{run}")
        store = Store(self.bench.program, self.bench.work / run, graph, is_relaxed=False)
        return run, store, given

    def command(self, store, given):
        command = [self.bench.program, "run", str(store.folder / "graph.json"), "--json",
                   "--thread", "main", "--store", store.url, "--durability", self.durability]
        return command if given is None else [*command, "--input", json.dumps(given)]

    def finish(self, store, given):
        done = subprocess.run(self.command(store, given), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
        if done.returncode != 0:
            raise Failure(f"status {done.returncode}: {done.stderr.decode()[-500:]}")

    def requested(self, run, since=0):
        return [KEY.search(body).group() for _, body in self.bench.server.seen(run)[since:]]

    def reference(self):
        run, store, given = self.make("reference")
        began = time.monotonic()
        self.finish(store, given)
        took = time.monotonic() - began
        keys = self.requested(run)
        document = store.observe(["main"])[0]
        if len(set(keys)) != len(keys) or set(keys) != keys_stored(document):
            raise Failure("the undisturbed run does not ask once for each key")
        return plain(document), set(keys), took

    def check(self):
        wanted, keys, took = self.reference()
        run, store, given = self.make("killed")
        stored = set()
        while self.kills < MAX_KILLS:
            since = len(self.bench.server.seen(run))
            ended = self.kill(run, self.command(store, given), since, took)
            stored = self.after_kill(run, store, since, stored)
            if ended:
                break
            self.kills += 1
            if store.observe(["main"])[0]["threads"]["main"]:
                given = None
        else:
            since = len(self.bench.server.seen(run))
            self.finish(store, given)
            self.after_kill(run, store, since, stored)
        got = plain(store.observe(["main"])[0])
        if self.durability != "sync":
            # Subgraphs of lost steps leave checkpoints that belong to nothing.
            for document in (got, wanted):
                document["threads"] = document["threads"]["main"].get("", [])
        check_equal(f"{self.kills} kills", wanted["steps"], got["steps"])
        check_equal(f"{self.kills} kills", wanted["threads"], got["threads"])
        if set(self.requested(run)) != keys:
            raise Failure("other tasks asked than in the undisturbed run")
        self.repeated = len(self.requested(run)) - len(keys)

    def kill(self, run, command, since, took):
        """At any time, or in the moment when a task asks; whether it had ended before."""
        if self.random.random() < 0.4:
            return disturb(command, self.random.uniform(self.bench.startup, took * 0.6))
        number = since + self.random.randint(2, 8)
        return disturb(command, 0, lambda child: self.bench.server.wait(run, number, child))

    def after_kill(self, run, store, since, stored):
        """Checks the requests of one life; the keys whose tasks are stored now."""
        asked = self.requested(run, since)
        for key, times in collections.Counter(asked).items():
            if times > 1:
                raise Failure(f"{key} asked {times} times within one process")
            if key in stored:
                raise Failure(f"{key} asked again, though its writes were stored")
        now = keys_stored(store.observe(["main"])[0])
        if not stored <= now:
            raise Failure(f"no longer stored: {sorted(stored - now)}")
        if self.durability == "sync":
            self.check_steps(asked, now)
        return now

    @staticmethod
    def check_steps(asked, now):
        """A step begins when the one before is stored: key:LINE.STEP.…"""
        newest = {}
        for key in asked:
            line, step = key.split(".")[:2]
            newest[line] = max(newest.get(line, 0), int(step))
        for key in asked:
            line, step = key.split(".")[:2]
            if int(step) < newest[line] and key not in now:
                raise Failure(f"{key} is not stored, but the step after it had begun")


class Waiting(Own):
    """Quick tasks are done long before the kill, a slow one of their step is not."""

    def check(self):
        run, store, given = self.make("killed")
        quick = {f"key:quick.1.{number}" for number in range(6)}
        if disturb(self.command(store, given), 1.2):
            raise Failure("ended before the slow task could")
        self.kills = 1
        now = keys_stored(store.observe(["main"])[0])
        if now != quick:
            raise Failure(f"stored while another task works: {sorted(now)}")
        self.finish(store, None)
        asked = collections.Counter(self.requested(run))
        if asked != collections.Counter([*quick, "key:slow.1.0", "key:slow.1.0"]):
            raise Failure(f"asked: {asked}")
        self.repeated = 1


class Locked(Own):
    """Killed while nothing can be stored: sync stands still, async has gone on and lost it."""

    def kill(self, run, command, since, took):
        if self.kills > 0:
            return super().kill(run, command, since, took)

        def lock(child):
            self.bench.server.wait(run, since + 3, child)
            holder.execute("BEGIN IMMEDIATE")
            newest.append(self.newest_step(run))
            time.sleep(0.5)

        newest = []
        database = self.bench.work / run / "h.db"
        holder = sqlite3.connect(database, isolation_level=None, timeout=TIMEOUT)
        try:
            ended = disturb(command, 0, lock)
        finally:
            holder.close()
        newest.append(self.newest_step(run))
        if self.durability == "async" and newest[1] < 5:
            raise Failure(f"async waited for the store at step {newest[1]}")
        # The step after the one that was seen may have been stored already.
        if self.durability == "sync" and newest[1] > newest[0] + 1:
            raise Failure(f"sync did not wait for the store: step {newest[0]}, then {newest[1]}")
        return ended

    def newest_step(self, run):
        return max(int(key.split(".")[1]) for key in self.requested(run))


# All of it.


class Bench:
    def __init__(self, options, work):
        self.program = os.path.abspath(options.heddle)
        self.work = work
        self.deadline = time.monotonic() + options.seconds
        self.server = Server()
        self.numbers = itertools.count()
        self.startup = self.measure()

    def measure(self):
        """How long a process takes that does nothing on a new database."""
        best = TIMEOUT
        graph, _ = GRAPHS["loop"](self.server.url)
        for _ in range(3):
            store = Store(self.program, self.work / f"startup.{next(self.numbers)}", graph)
            began = time.monotonic()
            store.observe(["main"])
            best = min(best, time.monotonic() - began)
        return best * 0.5


def cases(names):
    special = {"waiting": Waiting, "locked": Locked}
    found = [(special.get(name, Own), name, durability)
             for durability in ("sync", "async") for name in GRAPHS]
    found += [(Corpus, folder.name, durability)
              for folder in sorted(CORPUS.iterdir()) if folder.name not in SKIPPED
              for durability in ("sync", "async")]
    return [case for case in found if not names or case[1] in names]


def attempt(bench, kind, name, durability, seed):
    """True, False, or None when there is no time for it."""
    label = f"{name}, {durability}"
    if time.monotonic() > bench.deadline:
        return None
    case = kind(bench, name, durability, seed)
    try:
        case.check()
    except (Failure, subprocess.TimeoutExpired) as failure:
        print(f"failed: {label}: {failure}", flush=True)
        return False
    repeated = f", {case.repeated} requests repeated" if kind is not Corpus else ""
    print(f"ok: {label}: {case.kills} kills{repeated}", flush=True)
    return True


def new(name, seen):
    is_new = name not in seen
    seen.add(name)
    return is_new


def play(bench, names, seed, results):
    chosen = cases(names)
    random.Random(seed).shuffle(chosen)
    # Our own first, then every graph of the corpus once, then with the other durability.
    seen = set()
    chosen.sort(key=lambda case: 0 if case[0] is not Corpus else 1 if new(case[1], seen) else 2)
    with ThreadPoolExecutor(2) as pool:
        outcomes = [pool.submit(attempt, bench, *case, seed + number)
                    for number, case in enumerate(chosen)]
        left = [f"{case[1]} {case[2]}" for case, outcome in zip(chosen, outcomes)
                if outcome.result() is None]
    results.update(outcome.result() for outcome in outcomes)
    if left and results["rounds"] == 0:
        print(f"no time for {len(left)}: {', '.join(sorted(left))}")
    results["rounds"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/heddle")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    results = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="heddle-engine-") as work:
        bench = Bench(options, Path(work))
        while results["rounds"] == 0 or time.monotonic() < bench.deadline:
            play(bench, options.names, options.seed + 1000 * results["rounds"], results)
    print(f"{results[True]} passed, {results[False]} failed")
    return 1 if results[False] or not results[True] else 0


if __name__ == "__main__":
    sys.exit(main())
