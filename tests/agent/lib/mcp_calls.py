"""Graphs in which a scripted model calls tools of MCP servers."""

from __future__ import annotations


def graph(*calls: dict, again: list[dict] | None = None) -> dict:
    """A scripted model that makes these calls at once, then those of `again`, then replies that it
    is done."""
    replies = [{"when": {"@eq": ["{{messages[-1].type}}", "human"]}, "tool_calls": list(calls)}]
    if again:
        replies.append({"when": {"@eq": ["{{messages[-1].tool_call_id}}", calls[-1]["id"]]}, "tool_calls": again})
    replies.append({"content": "done"})
    return {
        "name": "caller",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": {
            "model": {"kind": "script", "replies": replies},
            "act": {"kind": "tools", "sources": [{"mcp": "{{config.mcp_config}}"}]},
        },
        "edges": [
            ["__start__", "model"],
            {"from": "model", "fanout": {"over": "{{messages[-1].tool_calls}}", "as": "call", "to": "act",
                                         "arg": {"call": "{{call}}"}}},
            ["act", "model"],
        ],
    }  # fmt: skip


def call(name: str, id: str = "c1", **args) -> dict:
    return {"name": name, "args": args, "id": id}


def results(values: dict) -> dict:
    return {message["tool_call_id"]: message for message in values["messages"] if message["type"] == "tool"}
