"""Makes two records of the same scenario comparable.

Ids, versions and times are different in every run. They become symbols, numbered in the order of
first appearance. This keeps relations: the same id is the same symbol, and a checkpoint with
another parent is detected. README.md describes what else is made deterministic, and why LangGraph
leaves it open.
"""

import json
import re

NULL_TASK = "00000000-0000-0000-0000-000000000000"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# The id of a model's message has a prefix and may have a suffix; an interrupt's has 32 digits.
ID = re.compile(rf"(?:lc_)?run-+{UUID}(?:-\d+)?|{UUID}|\b[0-9a-f]{{32}}\b")
VERSION = re.compile(r"^(\d{32})\.\S+$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)$")
ELAPSED = re.compile(r"\(elapsed: [\d.]+s\)")
ADVICE = re.compile(r"(?<=\.)\s.*", re.DOTALL)  # after the first sentence of an error
SERVER = re.compile(r"http://127\.0\.0\.1:\d+")
CANCELLED = "CancelledError()"
SPECIAL = ("__error__", "__scheduled__", "__interrupt__", "__resume__")
# Members that a tracing library adds to the metadata of tasks and messages.
TRACING = re.compile(r"^(ls_|lc_|LANGSMITH|revision_id$)")


def text(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def bare(value):
    """Returns the text of a value without its ids, for sorting before ids have symbols."""
    return ID.sub("?", value if isinstance(value, str) else text(value))


# The order of events.
#
# Within a superstep the tasks run concurrently, and LangGraph (threads, or asyncio with threads for
# plain functions) does not define how their events interleave. So the events of a superstep are
# ordered by task, in the order in which the tasks started; the events of one task keep their order,
# and so do all events of the loop itself.


def is_start(event):
    return event["mode"] == "tasks" and "result" not in event["data"]


def is_result(event):
    return event["mode"] == "tasks" and "result" in event["data"]


def waits_for_result(event):
    """Returns whether a later result event identifies the task of this event."""
    data = event["data"]
    if event["mode"] == "updates":
        return data.get("__interrupt__") != [] and "__metadata__" not in data
    return event["mode"] == "values" and bool(data.get("__interrupt__"))


class Supersteps:
    """Orders the events of one namespace and those below it."""

    def __init__(self, depth):
        self.depth = depth
        self.output = []
        self.begin()

    def begin(self):
        self.started = {}  # task id to name, in the order of their start
        self.groups = {}  # task id to its events
        self.unknown = []  # events of an unknown task
        self.waiting = []  # events whose task the next result identifies

    def flush(self):
        for event in sorted(self.unknown, key=text):
            self.output.append(event)
        order = list(self.started) + [task for task in self.groups if task not in self.started]
        for task in order:
            self.output += self.arrange(self.groups.get(task, []))
        self.output += self.waiting
        self.begin()

    def arrange(self, events):
        """Orders one task's events: those of its subgraphs are ordered among themselves."""
        below = [event for event in events if len(event["ns"]) > self.depth]
        if not below:
            return events
        first = events.index(below[0])
        own = [event for event in events[first:] if len(event["ns"]) == self.depth]
        return events[:first] + order_events(below, self.depth + 1) + own

    def named(self, name):
        tasks = [task for task, other in self.started.items() if other == name]
        return tasks[0] if len(tasks) == 1 else None

    def owner(self, event):
        """Returns the task that an event belongs to, or None if unknown."""
        ns, mode, data = event["ns"], event["mode"], event["data"]
        if len(ns) > self.depth or mode == "messages":
            path = ns if len(ns) > self.depth else data[1]["langgraph_checkpoint_ns"].split("|")
            name, colon, task = path[self.depth].partition(":")
            return task if colon else self.named(name)
        if mode == "custom":
            if len(self.started) == 1:
                return next(iter(self.started))
            return self.named(data["node"]) if isinstance(data, dict) and "node" in data else None
        return data["payload"]["id"] if mode == "debug" else data["id"]

    def add(self, event):
        here = len(event["ns"]) == self.depth
        if here and waits_for_result(event):
            self.waiting.append(event)
        elif here and self.is_from_loop(event):
            if self.groups or self.unknown or self.waiting:
                self.flush()
            if is_start(event):
                self.started[event["data"]["id"]] = event["data"]["name"]
            self.output.append(event)
        else:
            task = self.owner(event)
            group = self.unknown if task is None else self.groups.setdefault(task, [])
            if here and is_result(event):
                group += self.waiting
                self.waiting = []
            group.append(event)

    @staticmethod
    def is_from_loop(event):
        if event["mode"] == "debug":
            return event["data"]["type"] != "task_result"
        return not is_result(event) and event["mode"] not in ("custom", "messages")


def is_cancelled(event):
    """Returns whether the event reports a task that was stopped because another failed."""
    data = event["data"]
    if event["mode"] == "debug":
        data = data["payload"]
    elif event["mode"] != "tasks":
        return False
    return data.get("error") == CANCELLED


def order_events(events, depth=0):
    steps = Supersteps(depth)
    for event in events:
        if not is_cancelled(event):
            steps.add(event)
    steps.flush()
    return steps.output


# The rest of the order, and parts that are left out.


def is_interrupt(value):
    return isinstance(value, dict) and {"id", "value"} <= set(value) <= {"$", "id", "value"}


def without_new_ids(value):
    """Returns a saved write without generated message ids.

    LangGraph sets a message's id when the reducer runs, on the object that is being saved in the
    background: it is random whether the saved write already has the id.
    """
    if isinstance(value, dict):
        made = value.get("$") == "message" and ID.fullmatch(value.get("id") or "")
        return {k: without_new_ids(v) for k, v in value.items() if not (made and k == "id")}
    return [without_new_ids(item) for item in value] if isinstance(value, list) else value


def is_saved_write(key, parent):
    if key == "result":  # of a task in a snapshot
        return "state" in parent
    return key in ("pending_writes", "__start__")


def clean(value):
    """Removes the parts that README.md excludes; sorts interrupts by value."""
    if isinstance(value, dict):
        if set(value) == {"type", "message"}:
            value = {**value, "message": ADVICE.sub("", value["message"])}
        value = {
            key: clean(without_new_ids(item) if is_saved_write(key, value) else item)
            for key, item in value.items()
            if not TRACING.match(key)
        }
        # Task metadata that has only tracing counts as empty.
        empty = (("metadata", {}), ("response_schema", None))
        return {key: item for key, item in value.items() if (key, item) not in empty}
    if isinstance(value, list):
        value = [clean(item) for item in value]
        if len(value) > 1 and all(is_interrupt(item) for item in value):
            value.sort(key=lambda item: text(item["value"]))
        return value
    if isinstance(value, str):
        if TIME.match(value):
            return "TIME"
        if value == CANCELLED:
            return None
        return SERVER.sub("SERVER", ELAPSED.sub("(elapsed: TIME)", value))
    return value


class Symbols:
    """Maps ids to symbols, numbered by kind in the order of first appearance."""

    def __init__(self):
        self.known = {}
        self.counts = {}

    def symbol(self, id, kind):
        if id == NULL_TASK:
            return "null-task"
        key = re.sub(rf"^.*?({UUID}).*$", r"\1", id)
        if key not in self.known:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.known[key] = f"{kind}-{self.counts[kind]}"
        return self.known[key]

    @staticmethod
    def kind(match, key, parent):
        if "-" not in match.group():
            return "interrupt"
        before = match.string[: match.start()]
        if before.endswith(":") or key == "task_id":
            return "task"
        if key == "id":
            if parent.get("$") == "message":
                return "message"
            return "checkpoint" if "channel_versions" in parent else "task"
        if key == "checkpoint_id" or key in ("", None) or "|" in key or ":" in key:
            return "checkpoint"
        return "id"

    def put(self, value, key=None, parent=None):
        """Replaces ids by symbols; sorts objects by name."""
        if isinstance(value, dict):
            names = sorted(value, key=lambda name: (bare(name), self.rank(name)))
            named = [(self.put(name, "", value), name) for name in names]
            return {new: self.put(value[name], name, value) for new, name in named}
        if isinstance(value, list):
            return [self.put(item, key, parent or {}) for item in value]
        if isinstance(value, str):
            return ID.sub(lambda m: self.symbol(m.group(), self.kind(m, key, parent or {})), value)
        return value

    def rank(self, string):
        """Orders strings by their ids: known ones by their symbols, then unknown ones."""
        numbers = []
        for match in ID.finditer(string):
            known = self.known.get(re.sub(rf"^.*?({UUID}).*$", r"\1", match.group()))
            numbers.append(int(known.rpartition("-")[2]) if known else 1 << 30)
        return numbers


class Versions:
    """Channel versions of one namespace: the number, and its index among those with this number."""

    def __init__(self):
        self.seen = {}

    def put(self, version):
        match = VERSION.match(version) if isinstance(version, str) else None
        if not match:
            return version
        number = int(match.group(1))
        same = self.seen.setdefault(number, [])
        if version not in same:
            same.append(version)
        return f"v{number}.{same.index(version) + 1}"

    def put_checkpoint(self, checkpoint):
        def put_all(versions):
            return {channel: self.put(versions[channel]) for channel in sorted(versions)}

        seen = checkpoint["versions_seen"]
        return {
            **checkpoint,
            "channel_versions": put_all(checkpoint["channel_versions"]),
            "versions_seen": {node: put_all(seen[node]) for node in sorted(seen)},
        }


def is_edge(write):
    return write["channel"].startswith("branch:to:")


def order_writes(writes, symbols):
    """Sorts writes by task; savers differ in the order of tasks and the place of special channels."""
    tasks = {}
    for write in writes:
        if write["value"] == CANCELLED:
            continue
        tasks.setdefault(write["task_id"], []).append(write)
    for own in tasks.values():
        # StateGraph keeps edges in a set, whose order differs between processes.
        own.sort(key=lambda w: w["channel"] if w["channel"] in SPECIAL or is_edge(w) else "")
    groups = sorted(tasks.values(), key=lambda own: (symbols.rank(own[0]["task_id"]), bare(own)))
    return [write for own in groups for write in own]


def normalise_thread(namespaces, symbols):
    result = {}
    for ns in sorted(namespaces, key=lambda ns: (bare(ns), symbols.rank(ns))):
        versions = Versions()
        items = []
        for item in namespaces[ns]:
            item = {
                **item,
                "checkpoint": versions.put_checkpoint(item["checkpoint"]),
                "pending_writes": order_writes(item["pending_writes"], symbols),
            }
            items.append(symbols.put(clean(item)))
        result[symbols.put(ns)] = items
    return result


def normalise(document):
    symbols = Symbols()
    steps = []
    for step in document["steps"]:
        if "events" in step:
            step = {**step, "events": order_events(step["events"])}
        # Symbols are numbered in the order of time.
        names = dict.fromkeys(("do", "thread", "events", "result", "error", "state", *sorted(step)))
        step = {name: symbols.put(clean(step[name]), name) for name in names if name in step}
        steps.append(step)
    threads = document["threads"]
    return {
        **document,
        "steps": steps,
        "threads": {name: normalise_thread(threads[name], symbols) for name in sorted(threads)},
    }
