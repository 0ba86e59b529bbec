"""Graphs that repeat their input and call each other."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from heddle.runtime import assistant
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


def compiled(**nodes):
    """The nodes, one after the other."""
    builder = StateGraph(MessagesState)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile()


def say(text):
    return {"messages": [AIMessage(text)]}


async def reply(state):
    return say("python: " + " / ".join(each.content for each in state["messages"]))


async def call(state):
    """`native one; script two`: calls these in order, with these texts."""
    said = []
    for each in state["messages"][-1].content.split("; "):
        name, _, words = each.partition(" ")
        output = await assistant(name).ainvoke({"messages": [{"role": "user", "content": words}]})
        said.append(output["messages"][-1]["content"])
    return say(" | ".join(said))


def ask(state):
    return say(f"you are {interrupt('how old?')}")


async def begin(state):
    return say("begun")


async def last(state):
    await asyncio.sleep(3600)


async def gate(state):
    """Waits for the file named in the input."""
    while not Path(state["messages"][0].content).exists():
        await asyncio.sleep(0.02)
    return say("open")


async def keep(state, config):
    """The graph receives secrets; its output about them is not stored."""
    key = config["configurable"]["openai_api_key"]
    return say(f"a key of {len(key)} bytes: {key}")


async def die(state):
    """As many times as the file contains; then the worker is killed."""
    file = Path(state["messages"][0].content)
    left = int(file.read_text())
    if left > 0:
        file.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return say("survived")


def fail(state):
    raise LookupError("nothing was found in " + Path(sys.modules[__name__].__file__).name)


told = compiled(reply=reply)
caller = compiled(call=call)
asker = compiled(ask=ask)
lasting = compiled(begin=begin, last=last)
patient = compiled(begin=begin, gate=gate)
keeper = compiled(keep=keep)
fragile = compiled(begin=begin, die=die)
wrong = compiled(fail=fail)
