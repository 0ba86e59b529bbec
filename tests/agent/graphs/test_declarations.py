"""Declarations for agents: errors as updates, limits of subgraphs, a text as input."""

from __future__ import annotations

import pytest

LIST = {"reducer": "add", "type": "list"}


def graph(node: dict, **more) -> dict:
    return {
        "name": "try",
        "state": {"found": LIST, "input": {"reducer": "ephemeral"}},
        "nodes": {"work": node, "after": {"kind": "set", "update": {"found": ["after"]}}},
        "edges": [["__start__", "work"], ["work", "after"], ["after", "__end__"]],
        **more,
    }


def run(heddle, declaration: dict, given=None, **body):
    given = {"found": []} if given is None else given
    return heddle(graphs={"try": declaration}).wait("try", given, **body)


def test_an_error_becomes_an_update(heddle):
    node = {
        "kind": "fail",
        "error": "broken",
        "type": "KeyError",
        "on_error": {"found": ["{{error.type}}: {{error.message}}"]},
    }
    assert run(heddle, graph(node))["found"] == ["KeyError: broken", "after"]


def test_an_error_is_tried_again_before(heddle):
    node = {"kind": "fail", "error": "broken", "times": 2, "retry": {"attempts": 3, "delay_ms": 1},
            "on_error": {"found": ["gave up"]}}  # fmt: skip
    assert run(heddle, graph(node))["found"] == ["after"]
    node["times"] = 3
    assert run(heddle, graph(node))["found"] == ["gave up", "after"]


def test_a_node_that_takes_too_long_is_an_error(heddle):
    node = {"kind": "sleep", "ms": 3600000, "timeout_ms": 50, "on_error": {"found": ["{{error.type}}"]}}
    assert run(heddle, graph(node))["found"] == ["NodeTimeoutError", "after"]


def test_an_update_that_cannot_be_made_leaves_the_error(heddle):
    node = {"kind": "fail", "error": "broken", "on_error": {"found": 1}}
    values = run(heddle, graph(node))
    assert "__error__" in values


def test_one_of_several_tasks_may_fail(heddle):
    declaration = graph({"kind": "set", "update": {}})
    declaration["nodes"]["each"] = {
        "kind": "fail", "error": "no {{item}}", "on_error": {"found": ["{{item}}: {{error.message}}"]},
    }  # fmt: skip
    declaration["edges"] = [
        ["__start__", "work"],
        {"from": "work", "fanout": {"over": ["a", "b"], "to": "each", "arg": {"item": "{{item}}"}}},
        ["each", "after"],
    ]
    assert run(heddle, declaration)["found"] == ["a: no a", "b: no b", "after"]


@pytest.mark.parametrize(
    "limit,expected",
    [
        (3, ["GraphRecursionError", "after"]),
        (10, ["done", "after"]),
        ("{{config.limit}}", ["GraphRecursionError", "after"]),
    ],
)
def test_a_subgraph_has_a_limit_of_its_own(heddle, limit, expected):
    inner = {
        "state": {"n": {"reducer": "add", "type": "number"}},
        "nodes": {"step": {"kind": "set", "update": {"n": 1}}},
        "edges": [["__start__", "step"], {"from": "step", "routes": [{"when": {"@lt": ["{{n}}", 5]}, "to": "step"}]}],
    }
    node = {"kind": "subgraph", "graph": "inner", "input": {"n": 0}, "update": {"found": ["done"]}, "recursion_limit": limit,
            "on_error": {"found": ["{{error.type}}"]}}  # fmt: skip
    values = run(heddle, graph(node, graphs={"inner": inner}), configurable={"limit": -4})
    assert values["found"] == expected


def test_a_text_is_input_where_there_is_a_channel_for_it(heddle):
    node = {"kind": "set", "update": {"found": ["{{input}}"]}}
    values = run(heddle, graph(node), "a text")
    assert values["found"] == ["a text", "after"]
