#!/usr/bin/env python3
"""Tests of the harness itself: it ignores irrelevant differences and detects relevant ones.

    harness_check.py [NAME…]

Takes the record of each scenario and damages it in every way in which an engine could be wrong:
each damage must be detected. Ends with "N passed, N failed".
"""

import asyncio
import copy
import json
import random
import sys

from compare import CORPUS, Server, first_difference, report
from normalise import ID, VERSION, normalise, order_events
from run_langgraph import play

# Together these graphs have everything: subgraphs, sends, interrupts, messages, forks.
NAMES = (
    "fork",
    "interrupt_nested",
    "interrupt_parallel",
    "script_tools",
    "send_edge",
    "update_state",
)

passed = failed = 0


def check(what, holds):
    global passed, failed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print(f"failed: harness, {what}")


# Irrelevant differences.


def each_string(value, change):
    if isinstance(value, dict):
        return {change(key): each_string(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [each_string(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def renamed(document):
    """Returns the same run with other ids and versions, and another order of objects' members."""
    ids, suffixes = {}, {}

    def new_id(match):
        old = match.group()
        if old.startswith("00000000-"):
            return old
        if old not in ids:
            ids[old] = "".join(c if c == "-" else f"{random.randrange(16):x}" for c in old)
        return ids[old]

    def change(string):
        version = VERSION.match(string)
        if version:
            return suffixes.setdefault(string, f"{version.group(1)}.{random.random()}")
        if "run-" in string:  # the id of a model's message, including its prefix
            return string
        return ID.sub(new_id, string)

    return shuffled(each_string(document, change))


def shuffled(value):
    if isinstance(value, dict):
        names = list(value)
        if names[:1] != ["$"]:
            random.shuffle(names)
        return {name: shuffled(value[name]) for name in names}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def start(task, name, ns=()):
    data = {"id": task, "name": name, "input": {}, "triggers": []}
    return {"ns": list(ns), "mode": "tasks", "data": data}


def result(task, name):
    return {"ns": [], "mode": "tasks", "data": {"id": task, "name": name, "result": {}}}


def update(name):
    return {"ns": [], "mode": "updates", "data": {name: {"x": name}}}


def below(task, number):
    return {"ns": [f"sub:{task}"], "mode": "custom", "data": number}


def check_order():
    begin = [start("1", "a"), start("2", "b"), start("3", "sub")]
    a, b = [update("a"), result("1", "a")], [update("b"), result("2", "b")]
    inner = start("4", "one", ["sub:3"])
    c = [inner, below("3", 1), below("3", 2), update("sub"), result("3", "sub")]
    wanted = begin + a + b + c
    check("tasks in the order of their start", order_events(begin + b + c + a) == wanted)
    check("tasks that interleave", order_events(begin + c[:2] + b + c[2:3] + a + c[3:]) == wanted)
    swapped = begin + a + b + [inner, c[2], c[1], *c[3:]]
    check("one task's events keep their order", order_events(swapped) == swapped)
    loop = {"ns": [], "mode": "values", "data": {"x": 1}}
    moved = order_events([*begin, *b, loop, *a, *c])
    check("nothing moves over the loop's events", moved == [*begin, *b, loop, *a, *c])


# Relevant differences.


def places(value, path=()):
    yield path, value
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def parent_of(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


def damage(document, path, value):
    """Returns the document with one error at a place."""
    wrong = copy.deepcopy(document)
    parent, key = parent_of(wrong, path), path[-1]
    if isinstance(value, bool) or value is None:
        parent[key] = "changed"
    elif isinstance(value, (int, float)):
        parent[key] = value + 1
    elif isinstance(value, str):
        other = next((o for p, o in places(document) if is_same_kind(o, value)), value + " changed")
        parent[key] = other
    elif isinstance(value, list):
        parent[key] = value[:-1] if value else ["one too many"]
    else:
        parent[key] = {**value, "one too many": 1} if value else {"one too many": 1}
    return wrong


def is_same_kind(other, value):
    """Detects an id that replaces an id: only their relations can reveal that."""
    pattern = ID if ID.search(value) else VERSION if VERSION.match(value) else None
    return pattern and isinstance(other, str) and other != value and pattern.fullmatch(other)


def ignored(path, value):
    """Detects parts that normalising leaves out on purpose."""
    names = [key for key in path if isinstance(key, str)]
    is_time = names and names[-1] in ("ts", "timestamp", "created_at")
    is_tracing = any(name.startswith(("ls_", "lc_")) for name in names)
    new_message = (
        names and names[-1] == "id" and ("pending_writes" in names or "__start__" in names or "result" in names)
    )
    return not path or is_time or is_tracing or new_message or names[-1:] == ["response_schema"]


def check_damages(name, document, count=40):
    normal = normalise(document)
    candidates = [(path, value) for path, value in places(document) if not ignored(path, value)]
    for path, value in random.sample(candidates, min(count, len(candidates))):
        try:
            seen = first_difference(normal, normalise(damage(document, path, value))) is not None
        except (KeyError, TypeError, AttributeError, ValueError, IndexError):
            seen = True  # the document does not have the form of README.md any more
        check(f"{name}: damage at {path}: {json.dumps(value)[:100]}", seen)


def check_document(name):
    document = asyncio.run(play(CORPUS / name))
    text = json.dumps(document)
    check(f"{name}: a document is plain JSON", json.loads(text) == document)
    check(f"{name}: normalising changes nothing that it is given", normalise(document) and json.dumps(document) == text)
    check(f"{name}: other ids, the same record", report(normalise(document), normalise(renamed(document))) is None)
    check_damages(name, document)


def main():
    random.seed(7)
    Server()
    check_order()
    for name in sys.argv[1:] or NAMES:
        check_document(name)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
