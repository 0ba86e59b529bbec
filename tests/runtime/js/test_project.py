"""Features of TypeScript projects other than runs: LangChain agents, an app, the store, other ways
of loading."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from programs import clean_environment, free_port, wait_for
from project import NODE

PROJECT = Path(__file__).parents[3] / "js" / "tests" / "project"

AGENT = """
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { ScriptedModel } from "@/model";

const add = tool(({ a, b }: { a: number; b: number }) => String(a + b), {
  name: "add",
  description: "Adds two numbers.",
  schema: z.object({ a: z.number(), b: z.number() }),
});

export const agent = createAgent({ model: new ScriptedModel({}) as never, tools: [add] });
"""

APP = """
import { Hono } from "hono";
import { streamText } from "hono/streaming";

const app = new Hono<{ Variables: { auth?: { user: { identity: string } } } }>();
app.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), q: c.req.query("q") ?? null, who: c.get("auth")?.user.identity ?? null }));
app.post("/shout", async (c) => c.text((await c.req.text()).toUpperCase(), 201, { "x-made": "yes" }));
app.get("/stream", (c) => streamText(c, async (stream) => { for (const n of [1, 2, 3]) await stream.write(`${n} `); }));
app.get("/boom", () => { throw new Error("the app broke"); });
export { app };
"""

STRICT = {"compilerOptions": {"strict": True, "module": "NodeNext", "paths": {"@/*": ["./*"]}}}

FILES = {
    "agent.ts": AGENT,
    "web.ts": APP,
    "plain.mjs": """
        import { Annotation, START, StateGraph } from "@langchain/langgraph";
        const State = Annotation.Root({ n: Annotation() });
        export default new StateGraph(State).addNode("next", ({ n }) => ({ n: n + 1 })).addEdge(START, "next");
    """,
    "common.cjs": """
        const { MessagesAnnotation, START, StateGraph } = require("@langchain/langgraph");
        const { AIMessage, HumanMessage } = require("@langchain/core/messages");
        const reply = ({ messages }, config) => {
            const humans = messages.filter((message) => message instanceof HumanMessage).length;
            return { messages: [new AIMessage(`${humans} ${typeof config.store.get} ${process.env.COLOUR}`)] };
        };
        exports.graph = new StateGraph(MessagesAnnotation).addNode("reply", reply).addEdge(START, "reply").compile();
    """,
    "asking.ts": """
        import { Annotation, START, StateGraph } from "@langchain/langgraph";
        import { assistant } from "heddle/runtime";
        const State = Annotation.Root({ word: Annotation<string>, heard: Annotation<string[]> });
        async function ask({ word }: typeof State.State) {
          const input = { messages: [{ role: "user", content: word }] };
          const { messages } = (await assistant("chat").invoke(input)) as { messages: { content: string }[] };
          return { heard: messages.map(({ content }) => content) };
        }
        export const graph = new StateGraph(State).addNode("ask", ask).addEdge(START, "ask").compile();
    """,
    "broken.ts": "export const graph = 1 +* 2;\n",
    "tsconfig.json": json.dumps(STRICT),
}

CONFIG = {
    "graphs": {
        "agent": "./agent.ts:agent",
        "plain": "./plain.mjs",
        "common": "./common.cjs:graph",
        "more": "./more.ts:makeGraph",
        "chat": "./chat.ts:graph",
        "nested": "./nested.ts:graph",
        "asking": "./asking.ts:graph",
        "broken": "./broken.ts:graph",
    },
    "http": {"app": "./web.ts:app"},
    "env": {"COLOUR": "green"},
}


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=PROJECT, config=CONFIG, files=FILES)


def say(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


def test_agent_of_langchain(server):
    thread = server.thread()
    values = server.wait("agent", say("add 20 22"), thread)
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert values["messages"][-1]["content"] == "the sum is 42"
    assert server.state(thread)["values"]["messages"] == values["messages"]


def test_other_kinds_of_files(server):
    assert server.wait("plain", {"n": 41}) == {"n": 42}
    thread = server.thread()
    for count in (1, 2):
        values = server.wait("common", say("hi"), thread)
        assert values["messages"][-1]["content"] == f"{count} function green"


def test_a_graph_that_cannot_be_loaded(server):
    values = server.wait("broken", {})
    assert "broken.ts" in json.dumps(values["__error__"])
    # The others are loaded anyway.
    assert server.wait("plain", {"n": 1}) == {"n": 2}


def test_store_and_context(server):
    first = server.wait("more", {"word": "a"}, context={"user": "ann"}, configurable={"suffix": "!"})
    assert first["seen"] == {"before": None, "count": 1, "word": "a!", "at": "1970-01-01T00:00:00.000Z"}
    second = server.wait("more", {"word": "b"}, context={"user": "ann"})
    assert second["seen"]["before"] == "a"
    item = server.ask("GET", "/store/items", params={"namespace": "words.ann", "key": "last"})
    assert item["value"] == {"word": "b"}


def test_messages_stream(server):
    events = server.stream("chat", say("a b c"), server.thread(), stream_mode=["messages-tuple"])
    parts = [data[0]["content"] for event, data, _ in events if event == "messages"]
    assert len(parts) > 3 and "".join(parts) == "you said: a b c"
    whole = server.stream("chat", say("a b c"), server.thread(), stream_mode=["messages"])
    partials = [data[0]["content"] for event, data, _ in whole if event == "messages/partial"]
    assert partials[-1] == "you said: a b c"
    assert all(after.startswith(before) for before, after in zip(partials, partials[1:], strict=False))


def test_subgraphs_stream(server):
    events = server.stream("nested", {"ask": False}, server.thread(), stream_mode=["updates"], stream_subgraphs=True)
    names = [event for event, _, _ in events if event.startswith("updates")]
    assert "updates" in names
    assert any(name.startswith("updates|middle:") and name.count("|") == 1 for name in names)
    assert any(name.startswith("updates|middle:") and name.count("|") == 2 for name in names)


def test_every_mode_streams(server):
    modes = ["values", "updates", "messages-tuple", "debug", "tasks", "checkpoints", "events", "custom"]
    events = server.stream(
        "agent", say("add 1 2"), server.thread(), stream_mode=modes, configurable={"api_key": "sk-hidden"}
    )
    names = {event for event, _, _ in events}
    assert {"values", "updates", "messages", "debug", "tasks", "checkpoints", "events"} <= names
    assert "error" not in names
    assert "sk-hidden" not in json.dumps(events)


def test_interrupt_in_a_subgraph(server):
    thread = server.thread()
    asked = server.wait("nested", {"ask": True}, thread)
    assert [each["value"] for each in asked["__interrupt__"]] == ["go deeper?"]
    state = server.state(thread, subgraphs=True)
    assert state["next"] == ["middle"] and state["tasks"][0]["state"]["next"] == ["leaf"]
    done = server.wait("nested", thread=thread, command={"resume": "yes"})
    assert done["path"][-3:] == ["yes", "tail", "after"]


def test_the_document_has_the_routes_of_the_app(server):
    paths = server.ask("GET", "/openapi.json")["paths"]
    assert list(paths["/hello/{name}"]) == ["get"] and list(paths["/shout"]) == ["post"]


def test_calling_another_assistant(server):
    thread = server.thread()
    assert server.wait("asking", {"word": "one"}, thread)["heard"] == ["one", "you said: one"]
    # It has memory, in its own namespace of the thread.
    assert server.wait("asking", {"word": "two"}, thread)["heard"] == ["one", "you said: one", "two", "you said: two"]
    assert server.state(thread)["values"]["word"] == "two"
    failed = server.wait("asking", {"word": "fail"}, thread)
    assert "the graph was told to fail" in failed["__error__"]["message"]


def test_forks(server):
    thread = server.thread()
    server.wait("chat", say("one"), thread)
    first = server.state(thread)["checkpoint"]["checkpoint_id"]
    server.wait("chat", say("two"), thread)
    values = server.wait("chat", say("three"), thread, checkpoint_id=first)
    assert [message["content"] for message in values["messages"]] == [
        "one",
        "you said: one",
        "three",
        "you said: three",
    ]


def test_drawing_and_schemas(server):
    graph = server.ask("GET", "/assistants/nested/graph")
    assert {node["id"] for node in graph["nodes"]} == {"__start__", "before", "middle", "after", "__end__"}
    deep = server.ask("GET", "/assistants/nested/graph", params={"xray": "true"})
    assert "middle:tail" in {node["id"] for node in deep["nodes"]}
    with server.client() as client:
        picture = client.get("/assistants/nested/graph", params={"xray": "true", "format": "svg"})
    assert picture.status_code == 200 and 'data-node="middle:tail"' in picture.text
    schemas = server.ask("GET", "/assistants/more/schemas")
    assert schemas["input_schema"]["properties"]["word"] == {"type": "string"}
    assert "user" in schemas["context_schema"]["properties"]
    assert "middle" in server.ask("GET", "/assistants/nested/subgraphs", params={"recurse": "true"})


def test_app(server):
    assert server.ask("GET", "/hello/ann", params={"q": "a b"}) == {"hello": "ann", "q": "a b", "who": None}
    with server.client() as client:
        answer = client.post("/shout", content="quiet")
        assert (answer.status_code, answer.text, answer.headers["x-made"]) == (201, "QUIET", "yes")
        assert client.get("/stream").text == "1 2 3 "
        assert client.get("/nothing").status_code == 404
        assert client.get("/boom").status_code == 500


def test_reload(project):
    server = project(
        config={"graphs": {"say": "./say.ts:graph"}, "runtime": {"reload": True}},
        files={"say.ts": say_file("before"), "package.json": '{"type": "module"}'},
    )
    thread = server.thread()
    assert server.wait("say", {"word": ""}, thread) == {"word": "before"}
    (server.project / "say.ts").write_text(say_file("after"))
    wait_for(lambda: server.wait("say", {"word": ""}, thread) == {"word": "after"}, what="the new code")


def say_file(word: str) -> str:
    return f"""
        import {{ Annotation, START, StateGraph }} from "@langchain/langgraph";
        const State = Annotation.Root({{ word: Annotation<string> }});
        export const graph = new StateGraph(State).addNode("say", () => ({{ word: "{word}" }})).addEdge(START, "say").compile();
    """


def test_worker_on_another_machine(project, tmp_path):
    port = free_port()
    key = "0123456789abcdef0123"
    server = project(
        folder=PROJECT,
        config={
            "graphs": {"chat": "./chat.ts:graph"},
            "runtime": {"workers": 0, "listen": f"127.0.0.1:{port}", "key": key},
        },
    )
    env = clean_environment() | {"HEDDLE_RUNTIME_ADDRESS": f"127.0.0.1:{port}", "HEDDLE_RUNTIME_KEY": key}
    main = NODE / "node_modules" / "heddle" / "dist" / "runtime" / "main.js"
    with open(tmp_path / "log", "w") as log:
        worker = subprocess.Popen(["node", str(main)], cwd=server.project, env=env, stdout=log, stderr=log)
    try:
        values = wait_for(lambda: answered(server), 180, "a worker that answers")
        assert values["messages"][-1]["content"] == "you said: hello"
        wrong = subprocess.run(
            ["node", str(main)], cwd=server.project, env=env | {"HEDDLE_RUNTIME_KEY": "wrong" * 5},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert wrong.returncode == 1 and "heddle-runtime: " in wrong.stderr
    finally:
        worker.terminate()
        worker.wait(60)
    assert os.path.exists(tmp_path / "log")


def answered(server):
    values = server.wait("chat", say("hello"))
    return None if "__error__" in values else values
