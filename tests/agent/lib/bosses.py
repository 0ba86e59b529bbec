"""An agent that calls the assistants of its configuration."""

from __future__ import annotations

MESSAGES = {"messages": {"reducer": "messages"}}


def agent(replies, **stream) -> dict:
    """A scripted model that calls the assistants of `config.assistants`."""
    return {
        "name": "boss",
        "state": MESSAGES,
        "nodes": {
            "model": {"kind": "script", "replies": replies, **stream},
            "tools": {"kind": "tools", "sources": [{"assistants": "{{config.assistants}}"}]},
        },
        "edges": [
            ["__start__", "model"],
            {
                "from": "model",
                "fanout": {
                    "over": "{{messages[-1].tool_calls}}",
                    "as": "call",
                    "to": "tools",
                    "arg": {"call": "{{call}}"},
                },
            },
            ["tools", "model"],
        ],
    }


AFTER_TOOLS = {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "heard: {{messages[-1].content}}"}
# Makes the calls of the configuration.
BOSS = agent([AFTER_TOOLS, {"content": "", "tool_calls": "{{config.calls}}"}])


def call(name: str, message: str = "hello", id: str | None = None) -> dict:
    return {"name": name, "args": {"message": message}, "id": id or f"call_{name}"}


def contents(values: dict, type: str | None = None) -> list[str]:
    return [m["content"] for m in values["messages"] if type in (None, m["type"])]


def make(server, graph: str, name: str, **configurable) -> str:
    body = {"graph_id": graph, "name": name, "config": {"configurable": configurable}}
    return server.ask("POST", "/assistants", json=body)["assistant_id"]
