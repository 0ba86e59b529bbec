"""`agent` with the common clients: agent-chat-ui, CopilotKit, RemoteGraph."""

from __future__ import annotations

import json

import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from plain import human
from weather import Weather


@pytest.mark.parametrize("script", ["chat_ui.mjs", "copilotkit.mjs"])
def test_a_client_in_javascript(heddle, mock, scripted, node, script):
    server, model, weather = heddle(), mock(), Weather(scripted)
    said = node(f"clients/{script}", server.url, model.base_url, json.dumps(weather.tool))
    assert said.strip().endswith("done")


@pytest.fixture
def remote(heddle, mock, scripted):
    server, model, weather = heddle(), mock(), Weather(scripted)
    config = {"configurable": model.configurable(http_tools=[weather.tool])}
    return server, RemoteGraph("agent", url=server.url), config


def test_remote_graph_invokes(remote):
    server, graph, config = remote
    config["configurable"]["thread_id"] = server.thread()
    values = graph.invoke(human('use weather with {"city": "Lima"}'), config)
    assert values["messages"][-1]["content"] == "The tools said: sunny in Lima"
    state = graph.get_state({"configurable": {"thread_id": config["configurable"]["thread_id"]}})
    assert state.values["messages"] == values["messages"] and state.next == ()


def test_remote_graph_streams(remote):
    server, graph, config = remote
    config["configurable"]["thread_id"] = server.thread()
    parts = list(graph.stream(human("hello there"), config, stream_mode=["messages", "updates"]))
    text = "".join(part.data[0]["content"] for part in parts if part.event == "messages")
    assert text == "You said: hello there"
    assert [list(part.data) for part in parts if part.event == "updates"] == [["model"]]


def test_remote_graph_resumes(remote):
    server, graph, config = remote
    config["configurable"] |= {"thread_id": server.thread(), "approval": True}
    values = graph.invoke(human('use weather with {"city": "Lima"}'), config)
    [interrupt] = values["__interrupt__"]
    assert interrupt["value"]["action_request"]["action"] == "weather"
    [pending] = graph.get_state({"configurable": {"thread_id": config["configurable"]["thread_id"]}}).interrupts
    assert pending.value["action_request"] == interrupt["value"]["action_request"]
    answer = Command(resume={"type": "edit", "args": {"city": "Quito"}})
    values = graph.invoke(answer, config)
    assert values["messages"][-1]["content"] == "The tools said: sunny in Quito"


def test_the_graph_can_be_drawn(remote):
    _, graph, _ = remote
    assert {"__start__", "model", "tool_node", "listen"} <= set(graph.get_graph().nodes)
