#!/usr/bin/env python3
"""Performs a scenario with the real LangGraph and prints the result.

    run_langgraph.py [--saver memory|heddle] [--graph python|json] [--raw] DIRECTORY
    run_langgraph.py --serve    reads directories, one per line; prints a raw document for each

The directory holds graph.py (or, for --graph json, graph.json) and scenario.json. README.md
describes the document; without --raw it is normalised.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, StateUpdate
from normalise import normalise
from values import decode, encode

MODES = ["values", "updates", "tasks", "debug", "checkpoints", "custom", "messages"]
SERVER = "http://heddle.test"  # placeholder for the test server in scenarios
CONFIG_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


@asynccontextmanager
async def open_saver(kind):
    if kind == "memory":
        yield InMemorySaver()
        return
    from heddle import HeddleSaver

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{folder}/h.db?durability=relaxed"
        async with HeddleSaver.from_conn_string(url) as saver:
            yield saver


def load_graph(folder, kind, saver):
    """Returns the compiled graph; the module is loaded again each time, so its counters start at 0."""
    if kind == "json":
        from declared import build

        return build(json.loads((folder / "graph.json").read_text()), saver)
    spec = importlib.util.spec_from_file_location(f"corpus_{folder.name}", folder / "graph.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module.make(saver)


def load_scenario(folder):
    text = (folder / "scenario.json").read_text()
    if SERVER in text:
        text = text.replace(SERVER, os.environ["HEDDLE_TEST_SERVER"])
    return json.loads(text)


# Snapshots as JSON.


def show_config(config):
    if config is None:
        return None
    configurable = config.get("configurable", {})
    return {key: encode(configurable[key]) for key in CONFIG_KEYS if key in configurable}


def show_task(task):
    state = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": encode(task.path),
        "error": encode(task.error),
        "interrupts": encode(task.interrupts),
        "state": show_config(state) if isinstance(state, dict) else state and show_state(state),
        "result": encode(task.result),
    }


def show_state(state):
    return {
        "values": encode(state.values),
        "next": list(state.next),
        "tasks": [show_task(task) for task in state.tasks],
        "metadata": encode(state.metadata),
        "created_at": state.created_at,
        "config": show_config(state.config),
        "parent_config": show_config(state.parent_config),
        "interrupts": encode(state.interrupts),
    }


def show_checkpoint(item):
    return {
        "config": show_config(item.config),
        "parent_config": show_config(item.parent_config),
        "metadata": encode(item.metadata),
        "checkpoint": encode(dict(item.checkpoint)),
        "pending_writes": [
            {"task_id": task_id, "channel": channel, "value": encode(value)}
            for task_id, channel, value in item.pending_writes
        ],
    }


def find_interrupt(pending, which):
    """Finds an interrupt by number or by value."""
    if isinstance(which, int):
        return pending[which]
    return next(item for item in pending if encode(item.value) == which)


def show_error(error):
    return {"type": type(error).__name__, "message": str(error)}


class Player:
    """Performs the steps of one scenario on one graph."""

    def __init__(self, graph):
        self.graph = graph
        self.threads = []
        self.returned = []  # the configuration of each step, or None

    def config(self, step):
        thread = step.get("thread", "main")
        if thread not in self.threads:
            self.threads.append(thread)
        return {"configurable": {"thread_id": thread}}

    async def find(self, thread, ref):
        """Returns the configuration of the checkpoint that a reference selects."""
        if "saved" in ref:
            return self.returned[ref["saved"]]
        if "task" in ref:
            at = await self.find(thread, ref["of"]) if "of" in ref else thread
            state = await self.graph.aget_state(at, subgraphs=True)
            for name in ref["task"].split("/"):
                state = next(task.state for task in state.tasks if task.name == name)
            return state.config
        if "parent" in ref:
            state = await self.graph.aget_state(await self.find(thread, ref["parent"]))
            return state.parent_config
        history = [state async for state in self.graph.aget_state_history(thread)]
        if "index" in ref:
            return history[ref["index"]].config
        wanted = [
            state
            for state in history
            if state.metadata["step"] == ref["step"] and ref.get("source") in (None, state.metadata["source"])
        ]
        return wanted[0].config

    async def command(self, thread, spec):
        members = {key: decode(value) for key, value in spec.items() if key != "resume_ids"}
        if "resume_ids" in spec:
            pending = (await self.graph.aget_state(thread)).interrupts
            members["resume"] = {
                find_interrupt(pending, which).id: decode(answer) for which, answer in spec["resume_ids"]
            }
        return Command(**members)

    async def run_arguments(self, step):
        thread = self.config(step)
        config = await self.find(thread, step["from"]) if "from" in step else thread
        config = {"configurable": dict(config["configurable"])}
        if "recursion_limit" in step:
            config["recursion_limit"] = step["recursion_limit"]
        if "command" in step:
            what = await self.command(thread, step["command"])
        else:
            what = decode(step["input"])
        names = ("durability", "interrupt_before", "interrupt_after")
        return what, config, {name: step[name] for name in names if name in step}

    async def do_stream(self, step, record):
        what, config, options = await self.run_arguments(step)
        record["events"] = events = []
        stream = self.graph.astream(what, config, stream_mode=MODES, subgraphs=True, **options)
        async for ns, mode, data in stream:
            if mode == "messages":
                data = list(data)
            events.append({"ns": list(ns), "mode": mode, "data": encode(data)})

    async def do_invoke(self, step, record):
        what, config, options = await self.run_arguments(step)
        record["result"] = encode(await self.graph.ainvoke(what, config, **options))

    async def do_update(self, step, record):
        thread = self.config(step)
        at = await self.find(thread, step["from"]) if "from" in step else thread
        config = await self.graph.aupdate_state(at, decode(step["values"]), step.get("as_node"))
        self.returned[-1] = config
        record["result"] = show_config(config)

    async def do_bulk_update(self, step, record):
        thread = self.config(step)
        at = await self.find(thread, step["from"]) if "from" in step else thread
        supersteps = [
            [StateUpdate(decode(update["values"]), update.get("as_node")) for update in superstep]
            for superstep in step["supersteps"]
        ]
        config = await self.graph.abulk_update_state(at, supersteps)
        self.returned[-1] = config
        record["result"] = show_config(config)

    async def do_state(self, step, record):
        thread = self.config(step)
        at = await self.find(thread, step["from"]) if "from" in step else thread
        state = await self.graph.aget_state(at, subgraphs=step.get("subgraphs", False))
        record["result"] = show_state(state)

    async def do_history(self, step, record):
        thread = self.config(step)
        at = await self.find(thread, step["from"]) if "from" in step else thread
        states = self.graph.aget_state_history(at, limit=step.get("limit"))
        record["result"] = [show_state(state) async for state in states]

    async def perform(self, step):
        """Performs one step and returns its record. The record includes an error, expected or not."""
        record = {"do": step["do"], "thread": step.get("thread", "main"), "error": None}
        self.returned.append(None)
        try:
            await getattr(self, "do_" + step["do"])(step, record)
        except Exception as error:
            record["error"] = show_error(error)
        if step["do"] not in ("state", "history"):
            record["state"] = await self.state_after(step)
        return record

    async def state_after(self, step):
        """Returns the state of the thread; this fails if saved writes cannot be applied."""
        try:
            return show_state(await self.graph.aget_state(self.config(step), subgraphs=True))
        except Exception as error:
            return {"error": show_error(error)}


async def dump_thread(saver, thread):
    """Returns every checkpoint of a thread: namespace to list, newest first."""
    namespaces = {}
    async for item in saver.alist({"configurable": {"thread_id": thread}}):
        ns = item.config["configurable"]["checkpoint_ns"]
        namespaces.setdefault(ns, []).append(show_checkpoint(item))
    for items in namespaces.values():
        items.sort(key=lambda item: item["config"]["checkpoint_id"], reverse=True)
    return namespaces


class UnexpectedOutcome(Exception):
    """The scenario expects a step to fail and it does not, or vice versa."""


def check_outcome(number, step, record):
    wanted, got = step.get("error"), record["error"] and record["error"]["type"]
    if wanted != got:
        got = record["error"] or "success"
        raise UnexpectedOutcome(f"step {number}: expected {wanted or 'success'}, got {got}")


async def play(folder, saver_kind="memory", graph_kind="python"):
    folder = Path(folder)
    scenario = load_scenario(folder)
    async with open_saver(saver_kind) as saver:
        player = Player(load_graph(folder, graph_kind, saver))
        steps = []
        for number, step in enumerate(scenario["steps"]):
            record = await player.perform(step)
            check_outcome(number, step, record)
            steps.append(record)
        threads = {thread: await dump_thread(saver, thread) for thread in player.threads}
    return {"scenario": folder.name, "steps": steps, "threads": threads}


def serve():
    for line in sys.stdin:
        try:
            answer = asyncio.run(play(line.rstrip("\n")))
        except Exception:
            answer = {"failure": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--saver", choices=("memory", "heddle"), default="memory")
    parser.add_argument("--graph", choices=("python", "json"), default="python")
    parser.add_argument("--raw", action="store_true", help="with real ids, versions and times")
    options = parser.parse_args()
    if options.serve:
        return serve()
    if options.folder is None:
        parser.error("no directory given")
    document = asyncio.run(play(options.folder, options.saver, options.graph))
    if not options.raw:
        document = normalise(document)
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
