#!/usr/bin/env python3
"""Compares the events mode with LangGraph's astream_events(version="v2").

    events_check.py HEDDLE

Runs the first input of some graphs of the corpus on both sides. It compares all members of all
events, for each graph, node and model call in their order, independently of concurrent tasks. It
does not compare names of graphs, generated ids, metadata of tracing, the functions of conditional
edges, which a declaration does not have, and events that nodes emit, which LangGraph leaves out of
this stream. Ends with "N passed, N failed".
"""

import asyncio
import itertools
import json
import re
import subprocess
import sys
import traceback
from pathlib import Path

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt
from run_langgraph import load_graph, load_scenario
from values import decode

HERE = Path(__file__).resolve().parent
NAMES = [
    "interrupt_once",
    "interrupt_subgraph",
    "loop_edges",
    "map_reduce",
    "messages",
    "nested_three",
    "parallel",
    "parallel_error",
    "route_one",
    "script_error",
    "script_reply",
    "script_subgraph",
    "script_tools",
    "subgraph_mapped",
]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?")
MESSAGE = ("type", "content", "name", "tool_calls", "tool_call_id", "usage_metadata")


def show(value):
    """Returns the part of a value that both sides can have in common."""
    if isinstance(value, BaseMessage):
        return show({**value.model_dump(), "type": value.type})
    if isinstance(value, Interrupt):
        return {"value": show(value.value)}
    if isinstance(value, Command):
        return show(value.update)
    if isinstance(value, dict):
        if "type" in value and "content" in value:
            return {key: show(value[key]) for key in MESSAGE if value.get(key)}
        if set(value) == {"id", "value"}:
            return {"value": show(value["value"])}
        return {key: show(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [show(item) for item in value]
    return UUID.sub("ID", value) if isinstance(value, str) else value


def is_function(event):
    """Detects the function of a conditional edge, which follows the node in a sequence."""
    return event["event"].startswith("on_chain") and any(
        tag.startswith("seq:step:") and tag != "seq:step:1" for tag in event["tags"]
    )


def place(text):
    """Sort key: start, middle, end; in the middle updates by content, message chunks in their
    order."""
    kind = json.loads(text)["event"]
    part = 0 if kind.endswith("_start") else 2 if kind.endswith("_end") else 1
    return part, text if kind == "on_chain_stream" else ""


def normalise(events):
    names = {}
    streams = {}
    for event in events:
        if is_function(event) or event["event"] == "on_custom_event" or "langsmith:hidden" in event["tags"]:
            continue
        is_graph = event["event"].startswith("on_chain") and len(event["parent_ids"]) % 2 == 0
        path = [names[run] for run in event["parent_ids"]]
        name = names.setdefault(event["run_id"], "graph" if is_graph else event["name"])
        metadata = {key: show(item) for key, item in event["metadata"].items() if not key.startswith(("ls_", "lc_"))}
        shown = {"event": event["event"], "tags": event["tags"], "metadata": metadata, "data": show(event["data"])}
        streams.setdefault("/".join([*path, name]), {}).setdefault(event["run_id"], []).append(
            json.dumps(shown, sort_keys=True)
        )
    # Concurrent tasks have no fixed order: in the updates of their graph, and several of one name,
    # such as sends.
    for runs in streams.values():
        for shown in runs.values():
            shown.sort(key=place)
    return {path: sorted(runs.values()) for path, runs in sorted(streams.items())}


async def reference(folder, value, thread):
    graph = load_graph(folder, "python", InMemorySaver())
    found = []
    try:
        async for event in graph.astream_events(decode(value), {"configurable": {"thread_id": thread}}, version="v2"):
            found.append(event)
    except Exception:  # the stream of a failed run just ends
        pass
    return found


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "$"}
    return [plain(item) for item in value] if isinstance(value, list) else value


def native(heddle, folder, value, thread):
    done = subprocess.run(
        [
            heddle,
            "run",
            str(folder / "graph.json"),
            "--events",
            "--thread",
            thread,
            "--input",
            json.dumps(plain(value)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [json.loads(line)["data"] for line in done.stdout.splitlines()]


def check(heddle, name):
    folder = HERE / "corpus" / name
    try:
        value = load_scenario(folder)["steps"][0]["input"]
        wanted = normalise(asyncio.run(reference(folder, value, "main")))
        got = normalise(native(heddle, folder, value, "main"))
    except Exception as error:
        print(f"failed: events of {name}: {error!r}\n{traceback.format_exc()}")
        return False
    for path in sorted({*wanted, *got}):
        left, right = sum(wanted.get(path, []), []), sum(got.get(path, []), [])
        for number, (one, other) in enumerate(itertools.zip_longest(left, right)):
            if one != other:
                print(f"failed: events of {name}: event {number} of {path}\n  reference: {one}\n  native:    {other}")
                return False
    return True


def main():
    results = [check(sys.argv[1], name) for name in NAMES]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
