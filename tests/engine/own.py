"""Slow graphs. Each http task has a key, key:LINE.STEP.NAME, which it sends to the server and
writes to `log` when it is done. make(url) returns the graph and its input."""

LOG = {"reducer": "add", "type": "list"}


def ask(url, node, key, **update):
    return {
        "kind": "http",
        "method": "POST",
        "url": f"{url}/{node}",
        "body": {"key": key},
        "update": {"log": [key], **update},
    }


def loop(url):
    """One task after another, with a pause between."""
    return {
        "name": "loop",
        "state": {"n": {"type": "number"}, "log": LOG},
        "nodes": {
            "work": ask(url, "work", "key:loop.{{n}}.work", n={"@add": ["{{n}}", 1]}),
            "rest": {"kind": "sleep", "ms": 4},
        },
        "edges": [
            ["__start__", "work"],
            ["work", "rest"],
            {"from": "rest", "routes": [{"when": {"@lt": ["{{n}}", 15]}, "to": "work"}, {"to": "__end__"}]},
        ],
        "recursion_limit": 100,
    }, {"n": 0}


def fanout(url):
    """Rounds of twelve parallel tasks."""
    return {
        "name": "fanout",
        "state": {"n": {"type": "number"}, "log": LOG},
        "nodes": {
            "plan": {"kind": "set", "update": {"n": {"@add": ["{{n}}", 1]}}},
            "item": ask(url, "item", "key:fanout.{{n}}.{{x}}"),
            "gather": {"kind": "sleep", "ms": 3},
        },
        "edges": [
            ["__start__", "plan"],
            {
                "from": "plan",
                "fanout": {"over": {"@range": 12}, "as": "x", "to": "item", "arg": {"x": "{{x}}", "n": "{{n}}"}},
            },
            ["item", "gather"],
            {"from": "gather", "routes": [{"when": {"@lt": ["{{n}}", 5]}, "to": "plan"}, {"to": "__end__"}]},
        ],
        "recursion_limit": 100,
    }, {"n": 0}


def lines(url):
    """Two parallel sequences of different length that join."""
    nodes = {f"a{step}": ask(url, "a", f"key:a.{step}.x") for step in range(6)}
    nodes |= {f"b{step}": ask(url, "b", f"key:b.{step}.x") for step in range(3)}
    nodes["meet"] = ask(url, "meet", "key:c.0.meet")
    edges = [["__start__", "a0"], ["__start__", "b0"]]
    edges += [[f"a{step}", f"a{step + 1}"] for step in range(5)]
    edges += [[f"b{step}", f"b{step + 1}"] for step in range(2)]
    edges += [{"from": ["a5", "b2"], "to": "meet"}]
    return {"name": "lines", "state": {"log": LOG}, "nodes": nodes, "edges": edges}, {"log": []}


def nested(memory):
    def make(url):
        """A loop around a subgraph with several steps."""
        inner = {
            "name": "inner",
            "state": {"n": {"type": "number"}, "done": LOG},
            "nodes": {
                step: ask(url, step, f"key:inner{{{{n}}}}.{number}.{step}")
                for number, step in enumerate(("first", "second", "third"))
            },
            "edges": [["__start__", "first"], ["first", "second"], ["second", "third"]],
        }
        for node in inner["nodes"].values():
            node["update"] = {"done": node["update"]["log"]}
        return {
            "name": "nested",
            "state": {"n": {"type": "number"}, "log": LOG},
            "nodes": {
                "sub": {
                    "kind": "subgraph",
                    "graph": "inner",
                    "memory": memory,
                    "input": {"n": "{{n}}"},
                    "update": {"log": "{{result.done}}"},
                },
                "after": ask(url, "after", "key:outer.{{n}}.after", n={"@add": ["{{n}}", 1]}),
            },
            "edges": [
                ["__start__", "sub"],
                ["sub", "after"],
                {"from": "after", "routes": [{"when": {"@lt": ["{{n}}", 5]}, "to": "sub"}, {"to": "__end__"}]},
            ],
            "graphs": {"inner": inner},
            "recursion_limit": 100,
        }, {"n": 0}

    return make


def chat(url):
    """A scripted model that streams, and a tool."""
    return {
        "name": "chat",
        "state": {"n": {"type": "number"}, "messages": {"reducer": "messages"}, "log": LOG},
        "nodes": {
            "model": {
                "kind": "script",
                "stream": {"by": "word", "delay_ms": 1},
                "replies": [{"content": "Let me look at number {{n}}."}],
            },
            "tool": ask(
                url, "tool", "key:chat.{{n}}.tool", n={"@add": ["{{n}}", 1]}, messages=[{"@human": "that was {{n}}"}]
            ),
        },
        "edges": [
            ["__start__", "model"],
            ["model", "tool"],
            {"from": "tool", "routes": [{"when": {"@lt": ["{{n}}", 8]}, "to": "model"}, {"to": "__end__"}]},
        ],
        "recursion_limit": 100,
    }, {"n": 0, "messages": ["Hello"]}


def waiting(url):
    """Six quick tasks beside a slow one."""
    nodes = {f"quick{number}": ask(url, "quick", f"key:quick.1.{number}") for number in range(6)}
    nodes["slow"] = ask(url, "slow", "key:slow.1.0")
    return {
        "name": "waiting",
        "state": {"log": LOG},
        "nodes": nodes,
        "edges": [["__start__", name] for name in nodes],
    }, {"log": []}


def commanded(url):
    """Interrupts; a command can go to both following nodes."""
    nodes = {
        "ask": {"kind": "interrupt", "ask": ["now?"], "update": {"log": ["asked"]}},
        "quick": ask(url, "quick", "key:quick.1.0"),
        "slow": ask(url, "slow", "key:slow.1.0"),
    }
    return {
        "name": "commanded",
        "state": {"log": LOG},
        "nodes": nodes,
        "edges": [["__start__", "ask"], ["ask", "quick"], ["ask", "slow"]],
    }, {"log": []}


GRAPHS = {
    "loop": loop,
    "fanout": fanout,
    "lines": lines,
    "nested": nested("inherit"),
    "nested_own": nested("own"),
    "chat": chat,
    "waiting": waiting,
    "locked": lines,
    "commanded": commanded,
}
