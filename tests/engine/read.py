#!/usr/bin/env python3
"""Reads the engine's checkpoints with HeddleSaver and the equivalent LangGraph graph.

    read.py [--heddle PROGRAM] [--database FILE] [NAME…]

The engine performs scenarios of tests/equivalence/corpus on SQLite and prints states and history.
graph.py, compiled with HeddleSaver on the same file, must return the same, including ids and times,
and its messages must be LangChain's. The database of one graph is kept in FILE. Ends with "N
passed, N failed".
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "equivalence" / "corpus"
sys.path.insert(0, str(HERE.parent / "equivalence"))

from compare import Server, report  # noqa: E402
from heddle import HeddleSaver  # noqa: E402
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage  # noqa: E402
from run_langgraph import dump_thread, load_graph, show_state  # noqa: E402

# Message classes that must occur in these graphs.
MESSAGES = {
    "messages": {HumanMessage, AIMessage},
    "script_reply": {HumanMessage, AIMessage},
    "script_tools": {HumanMessage, AIMessage, ToolMessage},
}
LEFT = "script_tools"  # for the npm saver


class Failure(Exception):
    pass


def write(program, name, work):
    """Returns the engine's document of a scenario, with every thread at its end."""
    folder = work / name
    folder.mkdir()
    shutil.copy(CORPUS / name / "graph.json", folder)
    scenario = json.loads((CORPUS / name / "scenario.json").read_text())
    threads = list(dict.fromkeys(step.get("thread", "main") for step in scenario["steps"]))
    for thread in threads:
        scenario["steps"] += [{"do": "state", "thread": thread, "subgraphs": True}, {"do": "history", "thread": thread}]
    (folder / "scenario.json").write_text(json.dumps(scenario))
    done = subprocess.run(
        [program, "run", "--scenario", str(folder), "--json", "--store", f"sqlite:{folder}/h.db?durability=relaxed"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    if done.returncode != 0:
        raise Failure(f"status {done.returncode}: {done.stderr.decode()[-500:]}")
    document = json.loads(done.stdout)
    return threads, document["steps"][-2 * len(threads) :], document["threads"]


def tidy(value):
    """Removes irrelevant differences: Python's tuples, and the order of a saver's writes."""
    value = json.loads(json.dumps(value))
    for items in value.values() if isinstance(value, dict) else ():
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and "pending_writes" in item:
                item["pending_writes"].sort(key=lambda write: json.dumps(write, sort_keys=True))
    return value


def equal(what, wanted, got):
    difference = report(tidy(wanted), tidy(got))
    if difference:
        raise Failure(f"{what}: {difference}")


async def attempt(program, name, work, database):
    threads, looks, stored = write(program, name, work)
    url = f"sqlite:{work / name}/h.db"
    async with HeddleSaver.from_conn_string(url) as saver:
        graph = load_graph(CORPUS / name, "python", saver)
        classes = set()
        for number, thread in enumerate(threads):
            config = {"configurable": {"thread_id": thread}}
            state, history = looks[2 * number], looks[2 * number + 1]
            if not state["error"]:
                equal(
                    f"{thread}: get_state", state["result"], show_state(await graph.aget_state(config, subgraphs=True))
                )
            if not history["error"]:
                states = [item async for item in graph.aget_state_history(config)]
                equal(f"{thread}: get_state_history", history["result"], [show_state(item) for item in states])
                classes |= {type(message) for item in states for message in item.values.get("messages", ())}
            equal(f"{thread}: checkpoints", stored[thread], await dump_thread(saver, thread))
    check_classes(name, classes)
    if name == LEFT and database:
        shutil.copy(work / name / "h.db", database)
    return sum(len(items) for spaces in stored.values() for items in spaces.values())


def check_classes(name, classes):
    wanted = MESSAGES.get(name, set())
    if not wanted <= classes or not all(issubclass(each, BaseMessage) for each in classes):
        raise Failure(f"messages are {classes}, expected {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/heddle")
    parser.add_argument("--database")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = sorted(folder.name for folder in CORPUS.iterdir())
    passed = failed = 0
    Server()
    with tempfile.TemporaryDirectory(prefix="heddle-engine-") as work:
        for name in names:
            if options.names and name not in options.names:
                continue
            try:
                count = asyncio.run(attempt(os.path.abspath(options.heddle), name, Path(work), options.database))
                print(f"ok: {name}: {count} checkpoints read", flush=True)
                passed += 1
            except Exception as error:
                print(f"failed: {name}: {type(error).__name__}: {error}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed and not options.names else 0


if __name__ == "__main__":
    sys.exit(main())
