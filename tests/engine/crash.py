#!/usr/bin/env python3
"""Kills runs of graphs at random moments and resumes them.

    crash.py [--heddle PROGRAM] [--seed N] [--seconds N] [NAME…]

A child process (`heddle run`, SQLite) runs a graph and is killed with SIGKILL; another process,
which may be killed too, resumes the thread, until the run has ended. Then everything that is stored
(values, next, tasks, every checkpoint of every namespace) must equal that of an undisturbed run.

Nodes send requests to a server that counts them. A task whose writes were stored when the process
died must not send its request again; with durability sync only a running task may.

The graphs: those of own.py, and every one of tests/equivalence/corpus with its plain nodes replaced
by ones that send a request, each with durability sync and async. All of them run once in an order
that the seed decides, and again until the seconds are over. Ends with "N passed, N failed".
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "equivalence" / "corpus"
sys.path.insert(0, str(HERE.parent / "equivalence"))

from compare import report  # noqa: E402
from normalise import NULL_TASK, normalise  # noqa: E402
from own import GRAPHS  # noqa: E402
from server import Server  # noqa: E402

TIMEOUT = 60
MAX_KILLS = 12
ATTEMPTS = 5  # to hit a case with a kill


class Failure(Exception):
    pass


# The graphs of the corpus, with side effects.


def counted(graph, url, run):
    """Returns the declaration with a request to the server before each plain `set` node."""
    graph = json.loads(json.dumps(graph))
    for name, node in graph["nodes"].items():
        if node["kind"] != "set" or "goto" in node or "graph" in node:
            continue
        node["kind"] = "http"
        node["method"] = "POST"
        node["url"] = f"{url}/{run}/{name}"
        seen = node.get("input", graph["state"])
        node["body"] = {"state": {channel: "{{%s}}" % channel for channel in seen}, "update": node.get("update")}
    for name, inner in graph.get("graphs", {}).items():
        graph["graphs"][name] = counted(inner, url, run)
    return graph


def all_nodes(graph):
    yield from graph["nodes"].values()
    for inner in graph.get("graphs", {}).values():
        yield from all_nodes(inner)


# Stores, and threads with and without kills.


class Store:
    """A database, and a directory for each `heddle run --scenario`."""

    def __init__(self, program, folder, graph, server, is_relaxed=True):
        self.program = program
        self.folder = folder
        self.made = itertools.count()
        folder.mkdir()
        # Only processes die, not the machine; but waiting for the disk exposes code that does not
        # wait for it.
        self.url = f"sqlite:{folder}/h.db?timeout={TIMEOUT}"
        self.url += "&durability=relaxed" if is_relaxed else ""
        self.environment = {**os.environ, "HEDDLE_TEST_SERVER": server.url}
        self.graph = folder / "graph.json"
        self.graph.write_text(json.dumps(graph))

    def scenario_command(self, steps):
        folder = self.folder / str(next(self.made))
        folder.mkdir()
        (folder / "graph.json").symlink_to(self.graph)
        (folder / "scenario.json").write_text(json.dumps({"steps": steps}))
        return [self.program, "run", "--scenario", str(folder), "--json", "--store", self.url]

    def run(self, command):
        """Runs a command undisturbed; returns its output."""
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
                env=self.environment,
            )
        except subprocess.TimeoutExpired as expired:
            raise Failure(f"no end after {TIMEOUT} s") from expired
        if done.returncode != 0:
            raise Failure(f"status {done.returncode}: {done.stderr.decode()[-500:]}")
        return done.stdout

    def perform(self, steps):
        """Performs steps undisturbed; returns their document."""
        document = json.loads(self.run(self.scenario_command(steps)))
        document["scenario"] = ""
        return document

    def observe(self, threads, step=None):
        """Returns everything that is stored, and the record of `step`, which is performed first."""
        steps = [] if step is None else [step]
        for thread in threads:
            steps.append({"do": "state", "thread": thread, "subgraphs": True})
            steps.append({"do": "history", "thread": thread})
        document = self.perform(steps)
        record = None if step is None else document["steps"].pop(0)
        return document, record


class Case:
    """A graph with one durability: an undisturbed run, and one that is killed."""

    def __init__(self, bench, name, durability, seed):
        self.bench = bench
        self.server = bench.server()
        self.name = name
        self.durability = durability
        self.random = random.Random(seed)
        self.kills = 0
        self.repeated = None  # number of requests, where it is counted
        self.rooted = {"main"} if durability == "async" else set()  # see plain()

    def run_name(self, kind):
        return f"{self.name}.{self.durability}.{kind}.{next(self.bench.numbers)}"

    def disturb(self, store, command, delay, wait=None):
        """Runs a command and kills it after `delay` seconds; returns whether it had ended before."""
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=store.environment
        ) as child:
            try:
                if wait:
                    wait(child)
                child.wait(delay)
            except subprocess.TimeoutExpired:
                pass
            finally:
                child.kill()
        self.server.settle()
        return child.returncode >= 0


def unfinished(state):
    """Returns the names of tasks without a stored result, including those of subgraphs."""
    names = set()
    for task in (state or {}).get("tasks", ()):
        if task["result"] is None:
            names.add(task["name"])
        if isinstance(task["state"], dict) and "tasks" in task["state"]:
            names |= unfinished(task["state"])
    return names


def plain(document, rooted):
    """Normalises a document, without the mark that a run was resumed: only that may differ.

    For `rooted` threads it compares only the graph itself: checkpoints of a lost step's subgraph
    stay, under the id of a task that was never stored.
    """
    threads = {
        name: {"": spaces.get("", [])} if name in rooted else spaces for name, spaces in document["threads"].items()
    }
    document = {**document, "threads": threads}
    document = normalise(document)
    for spaces in document["threads"].values():
        for item in itertools.chain(*spaces.values()):
            item["checkpoint"]["versions_seen"].pop("__interrupt__", None)
    return document


def questions(document, thread):
    """Returns the values of the pending interrupts of a thread."""
    [state] = [each["result"] for each in document["steps"] if each["do"] == "state" and each["thread"] == thread]
    return [interrupt["value"] for task in state["tasks"] for interrupt in task["interrupts"]]


def sent_to(namespaces):
    """Returns the nodes that a command goes to; they are no tasks before a step is done."""
    newest = namespaces.get("", [None])[0]
    names = set()
    for write in newest["pending_writes"] if newest else ():
        if write["task_id"] == NULL_TASK and write["channel"] == "__pregel_tasks":
            names.add(write["value"]["node"])
        elif write["task_id"] == NULL_TASK:
            names.add(write["channel"].removeprefix("branch:to:"))
    return names


@contextlib.contextmanager
def held(store):
    """Holds the write lock of the database."""
    holder = sqlite3.connect(store.folder / "h.db", isolation_level=None, timeout=TIMEOUT)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


def check_equal(what, wanted, got):
    difference = report(wanted, got)
    if difference:
        raise Failure(f"{what}: {difference}")


# Scenarios of the corpus.

# Graphs that are not killed, and why.
SKIPPED = {
    "fork": "a step refers to what another returned",
    "untracked": "values that are never saved are gone",
}
# A resumed run counts its steps from zero.
UNDISTURBED_ERRORS = ("GraphRecursionError",)


class Corpus(Case):
    def __init__(self, bench, name, durability, seed):
        super().__init__(bench, name, durability, seed)
        folder = CORPUS / name
        self.graph = json.loads((folder / "graph.json").read_text())
        text = (folder / "scenario.json").read_text()
        self.steps = json.loads(text.replace("http://heddle.test", self.server.url))["steps"]
        for step in self.steps:
            if step["do"] in ("stream", "invoke") and step.get("durability") != "exit":
                step["durability"] = durability
        self.steps = [step for step in self.steps if step["do"] not in ("state", "history")]
        if any(node["kind"] == "fail" and "times" in node for node in all_nodes(self.graph)):
            self.steps = self.steps[:1]  # the process counts the failures
        self.threads = list(dict.fromkeys(step.get("thread", "main") for step in self.steps))
        self.rooted = {
            step.get("thread", "main")
            for step in self.steps
            if durability == "async" or step.get("durability") == "exit"
        }

    def make(self, kind):
        run = self.run_name(kind)
        graph = counted(self.graph, self.server.url, run)
        return run, Store(self.bench.program, self.bench.work / run, graph, self.server)

    def reference(self):
        """For each step: what is stored, the requests so far, and the duration of the step."""
        run, store = self.make("reference")
        outcomes = []
        for number, step in enumerate(self.steps):
            began = time.monotonic()
            document, record = store.observe(self.threads, step)
            took = time.monotonic() - began
            error = record["error"] and record["error"]["type"]
            if error != step.get("error"):
                raise Failure(f"step {number}, undisturbed: {record['error']}")
            asked = collections.Counter(self.server.seen(run))
            outcomes.append((plain(document, self.rooted), asked, took))
        return outcomes

    def can_kill(self, step):
        if step["do"] not in ("stream", "invoke") or step.get("error") in UNDISTURBED_ERRORS:
            return False
        if "task" in step.get("from", {}):
            return False  # its checkpoint map is an argument of the run
        # With durability exit, a subgraph is stored before its parent. A subgraph with its own
        # memory would find a visit that its parent has not made.
        return step["durability"] != "exit" or all(node.get("memory") != "own" for node in all_nodes(self.graph))

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
        current = step
        times = self.random.randint(1, 2) if self.can_kill(step) else 0
        for _ in range(times):
            since = len(self.server.seen(run))
            if self.kill(run, store, current, outcome):
                current = None
                break
            self.kills += 1
            after, _ = store.observe(self.threads)
            if plain(after, self.rooted) == outcome[0]:
                return after["threads"]  # everything was stored
            has_begun = self.has_begun(step, after["threads"])
            starts_anew = "from" in step and not has_begun
            self.allow(after, self.server.seen(run)[since:], allowed, starts_anew or step.get("durability") == "exit")
            if has_begun:
                current = self.go_on(step, after)
        after, _ = store.observe(self.threads, current)
        check_equal(f"step {number}, {self.kills} kills so far", outcome[0], plain(after, self.rooted))
        return after["threads"]

    def has_begun(self, step, threads):
        """Returns whether something of the step is stored, of the graph itself rather than of a
        subgraph."""
        for name, spaces in threads.items():
            now, before = spaces.get("", []), self.stored[name].get("", [])
            # A run from an older checkpoint moves the thread there only when it has stored a new
            # checkpoint.
            if now != before and ("from" not in step or len(now) != len(before)):
                return True
        return False

    def kill(self, run, store, step, outcome):
        """Kills it around one of its requests, or at any time; returns whether it had ended before."""
        command = store.scenario_command([step])
        left = (outcome[1] - collections.Counter(self.server.seen(run))).total()
        if left == 0 or self.random.random() < 0.2:
            return self.disturb(store, command, self.random.uniform(0, outcome[2]))
        number = len(self.server.seen(run)) + self.random.randint(1, left)
        return self.disturb(
            store, command, self.random.uniform(0, 0.008), lambda child: self.server.wait(run, number, child, TIMEOUT)
        )

    @staticmethod
    def allow(after, requests, allowed, is_all):
        """Counts the requests that may be repeated: of tasks without a stored result, or all of a
        run that starts over."""
        pending = set()
        for state in after["steps"][::2]:
            pending |= unfinished(state.get("result"))
        for namespaces in after["threads"].values():
            pending |= sent_to(namespaces)
        for request in requests:
            if request[0] in pending or is_all:
                allowed[request] += 1

    @staticmethod
    def go_on(step, after):
        names = ("do", "thread", "durability", "interrupt_before", "interrupt_after", "recursion_limit")
        again = {name: step[name] for name in names if name in step}
        # Answers by id are not stored before their tasks use them.
        asked = questions(after, step.get("thread", "main"))
        left = [pair for pair in step.get("command", {}).get("resume_ids", ()) if pair[0] in asked]
        return {**again, "command": {"resume_ids": left}} if left else {**again, "input": None}

    def count(self, run, number, wanted, allowed):
        got = collections.Counter(self.server.seen(run))
        for request in wanted | got:
            low, high = wanted[request], wanted[request] + allowed[request]
            if not low <= got[request] <= high:
                raise Failure(
                    f"step {number}: {request[0]} asked {got[request]} times, "
                    f"expected {low} to {high}: {request[1][:200]}"
                )


# Graphs of own.py: each request has a key that its task writes to the channel `log`.


def keys_stored(document):
    """Returns the keys of tasks whose writes are stored, in a state or as pending writes."""
    text = json.dumps(
        [
            [item["checkpoint"]["channel_values"], item["pending_writes"]]
            for spaces in document["threads"].values()
            for items in spaces.values()
            for item in items
        ]
    )
    return set(KEY.findall(text))


KEY = re.compile(r"key:[\w.:-]+")


class Own(Case):
    def make(self, kind):
        run = self.run_name(kind)
        graph, given = GRAPHS[self.name](f"{self.server.url}/{run}")
        store = Store(self.bench.program, self.bench.work / run, graph, self.server, is_relaxed=False)
        return run, store, given

    def command(self, store, given):
        command = [
            self.bench.program,
            "run",
            str(store.graph),
            "--json",
            "--thread",
            "main",
            "--store",
            store.url,
            "--durability",
            self.durability,
        ]
        return command if given is None else [*command, "--input", json.dumps(given)]

    def finish(self, store, given):
        store.run(self.command(store, given))

    def requested(self, run, since=0):
        return [KEY.search(body).group() for _, body in self.server.seen(run)[since:]]

    def reference(self):
        run, store, given = self.make("reference")
        began = time.monotonic()
        self.finish(store, given)
        took = time.monotonic() - began
        keys = self.requested(run)
        document = store.observe(["main"])[0]
        if len(set(keys)) != len(keys) or set(keys) != keys_stored(document):
            raise Failure("the undisturbed run does not ask once for each key")
        return plain(document, self.rooted), set(keys), took

    def check(self):
        wanted, keys, took = self.reference()
        run, store, given = self.make("killed")
        stored = set()
        while self.kills < MAX_KILLS:
            since = len(self.server.seen(run))
            ended = self.kill(run, store, given, since, took)
            stored = self.after_kill(run, store, since, stored)
            if ended:
                break
            self.kills += 1
            if store.observe(["main"])[0]["threads"]["main"]:
                given = None
        else:
            since = len(self.server.seen(run))
            self.finish(store, given)
            self.after_kill(run, store, since, stored)
        got = plain(store.observe(["main"])[0], self.rooted)
        check_equal(f"{self.kills} kills", wanted["steps"], got["steps"])
        check_equal(f"{self.kills} kills", wanted["threads"], got["threads"])
        if set(self.requested(run)) != keys:
            raise Failure("other tasks asked than in the undisturbed run")
        self.repeated = len(self.requested(run)) - len(keys)

    def kill(self, run, store, given, since, took):
        """Kills at any time, or during a request; returns whether it had ended before."""
        command = self.command(store, given)
        if self.random.random() < 0.4:
            return self.disturb(store, command, self.random.uniform(self.bench.startup, took * 0.6))
        number = since + self.random.randint(2, 8)
        return self.disturb(store, command, 0, lambda child: self.server.wait(run, number, child, TIMEOUT))

    def stored(self, store):
        return keys_stored(store.observe(["main"])[0])

    def wait_stored(self, store, keys, child):
        """Waits until the writes of these tasks are stored."""
        deadline = time.monotonic() + TIMEOUT
        while not keys <= self.stored(store):
            if child.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"not stored: {sorted(keys)}")
            time.sleep(0.01)

    def wait_asked(self, run, node, child, since=0):
        """Waits until a task of this node, whose requests are held, has sent its request."""
        deadline = time.monotonic() + TIMEOUT
        while node not in dict(self.server.seen(run)[since:]):
            if child.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"{node} never asked")
            time.sleep(0.01)

    def after_kill(self, run, store, since, stored):
        """Checks the requests of one process; returns the keys whose tasks are stored now."""
        asked = self.requested(run, since)
        for key, times in collections.Counter(asked).items():
            if times > 1:
                raise Failure(f"{key} asked {times} times within one process")
            if key in stored:
                raise Failure(f"{key} asked again, though its writes were stored")
        now = self.stored(store)
        if not stored <= now:
            raise Failure(f"no longer stored: {sorted(stored - now)}")
        if self.durability == "sync":
            self.check_steps(asked, now)
        return now

    @staticmethod
    def check_steps(asked, now):
        """A step begins after the one before is stored: key:LINE.STEP.…"""
        newest = {}
        for key in asked:
            line, step = key.split(".")[:2]
            newest[line] = max(newest.get(line, 0), int(step))
        for key in asked:
            line, step = key.split(".")[:2]
            if int(step) < newest[line] and key not in now:
                raise Failure(f"{key} is not stored, but the step after it had begun")


class Waiting(Own):
    """Quick tasks are stored while a slow one of their step is still running."""

    def check(self):
        run, store, given = self.make("killed")
        quick = {f"key:quick.1.{number}" for number in range(6)}

        def wait(child):
            self.wait_asked(run, "slow", child)
            self.wait_stored(store, quick, child)

        self.server.hold("slow")
        try:
            self.disturb(store, self.command(store, given), 0, wait)
        finally:
            self.server.hold()
        self.kills += 1
        if self.stored(store) != quick:
            raise Failure(f"stored while another task works: {sorted(self.stored(store))}")
        self.finish(store, None)
        asked = collections.Counter(self.requested(run))
        if asked != collections.Counter([*quick, "key:slow.1.0", "key:slow.1.0"]):
            raise Failure(f"asked: {asked}")
        self.repeated = 1


LINES_REQUESTS = 9  # until the longer line of `lines` has reached its last step
LINES_LAST = 5


class Locked(Own):
    """Killed while nothing can be stored: sync waits, async has continued and loses the steps."""

    def kill(self, run, store, given, since, took):
        if self.kills > 0:
            return super().kill(run, store, given, since, took)

        def lock(child):
            self.server.wait(run, since + 3, child, TIMEOUT)
            stack.enter_context(held(store))
            before = self.newest_step(run)
            if self.durability == "async":
                self.server.wait(run, LINES_REQUESTS, child, TIMEOUT)
                if self.newest_step(run) < LINES_LAST:
                    raise Failure(f"async waited for the store at step {self.newest_step(run)}")
                return
            time.sleep(0.5)
            # The step after the observed one may have been stored already.
            if self.newest_step(run) > before + 1:
                raise Failure(f"sync did not wait for the store at step {before}")

        with contextlib.ExitStack() as stack:
            return self.disturb(store, self.command(store, given), 0, lock)

    def newest_step(self, run):
        return max((int(key.split(".")[1]) for key in self.requested(run)), default=0)


class Commanded(Own):
    """Killed after a command before it is stored, and then between the results of its tasks.

    With durability sync, the tasks of a command start only after the command is stored. With async
    they start earlier; the command is lost, and sent again.
    """

    def check(self):
        step = {"do": "stream", "thread": "main", "durability": self.durability}
        command = {**step, "command": {"goto": ["quick", "slow"]}}
        _, store = self.start("reference")
        wanted = plain(store.observe(["main"], command)[0], self.rooted)
        run, store = self.start("killed")
        self.kill_unstored(run, store, command)
        lost = len(self.requested(run))
        self.kill_stored(run, store, command)
        after, _ = store.observe(["main"], {**step, "input": None})
        check_equal("continued", wanted, plain(after, self.rooted))
        asked = collections.Counter(self.requested(run)[lost:])
        if asked != {"key:quick.1.0": 1, "key:slow.1.0": 2}:
            raise Failure(f"asked: {asked}")
        self.repeated = lost + 1

    def start(self, kind):
        """Starts a thread that waits at an interrupt."""
        run, store, given = self.make(kind)
        store.perform([{"do": "stream", "thread": "main", "input": given}])
        return run, store

    def kill_unstored(self, run, store, command):
        def wait(child):
            self.server.wait(run, 2, child, 0.5 if self.durability == "sync" else TIMEOUT)

        before = store.observe(["main"])[0]
        with held(store):
            self.disturb(store, store.scenario_command([command]), 0, wait)
        self.kills += 1
        asked = len(self.requested(run))
        if asked != (0 if self.durability == "sync" else 2):
            raise Failure(f"{asked} tasks of a command that was not stored")
        if store.observe(["main"])[0] != before:
            raise Failure("something is stored though nothing could be")

    def kill_stored(self, run, store, command):
        since = len(self.server.seen(run))

        def wait(child):
            self.wait_asked(run, "slow", child, since)
            self.wait_stored(store, {"key:quick.1.0"}, child)

        self.server.hold("slow")
        try:
            self.disturb(store, store.scenario_command([command]), 0, wait)
        finally:
            self.server.hold()
        self.kills += 1


# The whole series.


class Bench:
    def __init__(self, options, work):
        self.program = os.path.abspath(options.heddle)
        self.work = work
        self.deadline = time.monotonic() + options.seconds
        self.numbers = itertools.count()
        self.local = threading.local()
        self.startup = self.measure()

    def server(self):
        """One server for each thread, so that settle() waits only for processes of its own case."""
        if not hasattr(self.local, "server"):
            self.local.server = Server()
        return self.local.server

    def measure(self):
        """Returns the duration of a process that does nothing on a new database."""
        best = TIMEOUT
        server = self.server()
        graph, _ = GRAPHS["loop"](server.url)
        for _ in range(3):
            store = Store(self.program, self.work / f"startup.{next(self.numbers)}", graph, server)
            began = time.monotonic()
            store.observe(["main"])
            best = min(best, time.monotonic() - began)
        return best * 0.5


def cases(names):
    special = {"waiting": Waiting, "locked": Locked, "commanded": Commanded}
    found = [(special.get(name, Own), name) for name in GRAPHS]
    found += [(Corpus, folder.name) for folder in sorted(CORPUS.iterdir()) if folder.name not in SKIPPED]
    unknown = set(names) - {name for _, name in found} - SKIPPED.keys()
    if unknown:
        sys.exit(f"no such graph: {', '.join(sorted(unknown))}")
    return [
        (kind, name, durability)
        for kind, name in found
        if not names or name in names
        for durability in ("sync", "async")
    ]


def say(line):
    """Writes a line at once, so that lines of other threads do not mix with it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def attempt(bench, kind, name, durability, seed):
    """Runs a case, again if it ended before a kill. Returns its kills, or -1 for a failure."""
    label = f"{name}, {durability}"
    for number in range(ATTEMPTS):
        case = kind(bench, name, durability, seed + number)
        try:
            case.check()
        except (Failure, TimeoutError) as failure:
            say(f"failed: {label}, seed {seed + number}: {failure}")
            return -1
        except Exception as error:
            say(f"failed: {label}, seed {seed + number}: {error!r}\n{traceback.format_exc()}")
            return -1
        if case.kills > 0:
            break
    repeated = "" if case.repeated is None else f", {case.repeated} requests repeated"
    say(f"ok: {label}: {case.kills} kills{repeated}")
    return case.kills


def play(bench, chosen, seed):
    """Runs every case once, in an order that the seed decides; returns the kills of each."""
    chosen = list(enumerate(chosen))
    random.Random(seed).shuffle(chosen)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda case: attempt(bench, *case[1], seed + case[0] * ATTEMPTS), chosen))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/heddle")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chosen = cases(options.names)
    kills = []
    rounds = 0
    with tempfile.TemporaryDirectory(prefix="heddle-engine-") as work:
        bench = Bench(options, Path(work))
        while rounds == 0 or time.monotonic() < bench.deadline:
            kills += play(bench, chosen, options.seed + 1000 * rounds)
            rounds += 1
    print(
        f"{len(chosen)} cases of {len({name for _, name, _ in chosen})} graphs, all done "
        f"{rounds} times: {sum(kill for kill in kills if kill > 0)} kills, "
        f"{kills.count(0)} times too quick to be killed"
    )
    print(f"{len(kills) - kills.count(-1)} passed, {kills.count(-1)} failed")
    return 1 if -1 in kills or not any(kills) else 0


if __name__ == "__main__":
    sys.exit(main())
