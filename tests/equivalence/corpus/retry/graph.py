"""Nodes that fail and are retried: until they succeed, until the retries are used up, or not at
all."""

import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict


class State(TypedDict):
    way: str
    log: Annotated[list, operator.add]


failures = 0


def flaky(state: State):
    global failures
    get_stream_writer()({"attempt": "flaky"})
    if failures < 2:
        failures += 1
        raise ConnectionError("reset")


def hopeless(state: State):
    get_stream_writer()({"attempt": "hopeless"})
    raise ConnectionError("down")


def wrong(state: State):
    get_stream_writer()({"attempt": "wrong"})
    raise ValueError("not retried")


def end(state: State):
    return {"log": ["end"]}


def choose(state: State):
    return state["way"] if state["way"] in ("flaky", "hopeless") else "wrong"


def retry(attempts, backoff, *types):
    return RetryPolicy(
        max_attempts=attempts,
        initial_interval=0.005,
        backoff_factor=backoff,
        jitter=False,
        retry_on=types,
    )


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("flaky", flaky, retry_policy=retry(3, 2, ConnectionError))
    builder.add_node("hopeless", hopeless, retry_policy=retry(2, 1, ConnectionError, TimeoutError))
    builder.add_node("wrong", wrong, retry_policy=retry(3, 1, ConnectionError))
    builder.add_node("end", end)
    builder.add_conditional_edges(START, choose, ["flaky", "hopeless", "wrong"])
    builder.add_edge("flaky", "end")
    builder.add_edge("hopeless", "end")
    builder.add_edge("wrong", "end")
    return builder.compile(checkpointer=checkpointer)
