"""A worker on a stub of the server: its graphs give the same results as in process."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from heddle.runtime.render import render
from heddle.runtime.worker import Worker
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from stub_server import ANSWER, CANCEL, ERROR, GO, HOLD, Ended, Pending, StubServer

PROJECT = Path(__file__).parents[2] / "tests" / "runtime" / "python" / "project"
GRAPHS = json.loads((PROJECT / "langgraph.json").read_text())["graphs"]

AUTH = """
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def who(authorization, path, headers, query_params):
    assert headers[b"x-one"] == b"1"
    if authorization is None:
        raise Auth.exceptions.HTTPException(401, "who are you?", {"WWW-Authenticate": "Bearer"})
    if authorization == "broken":
        raise ValueError("no database")
    return {"identity": authorization, "permissions": ["read"], "path": path, "q": query_params["q"]}

@auth.on
async def anything(ctx, value):
    return False

@auth.on.threads
async def threads(ctx, value):
    return {"owner": ctx.user.identity}

@auth.on.threads.create
async def create(ctx, value):
    value.setdefault("metadata", {})["owner"] = ctx.user["identity"]
    assert "read" in ctx.permissions, "may not read"

@auth.on.store(actions=["put"])
async def put(ctx, value):
    raise Auth.exceptions.HTTPException(409, f"{ctx.resource} {ctx.action}")
"""

APP = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

@asynccontextmanager
async def lifespan(app):
    yield {"started": True}

async def echo(request):
    return JSONResponse(
        {"id": request.path_params["id"], "q": request.query_params.get("q"), "body": (await request.body()).decode(),
         "started": request.state.started, "user": request.user.identity},
        status_code=201, headers={"x-two": "2"})

async def stream(request):
    async def parts():
        for i in range(3):
            yield f"part {i}"
    return StreamingResponse(parts())

async def fail(request):
    raise RuntimeError("broken")

app = Starlette(routes=[Route("/custom/{id}", echo, methods=["POST"]), Route("/stream", stream), Route("/fail", fail)], lifespan=lifespan)
"""

EMBED = """
async def embed(texts):
    return [[float(len(text)), 1.0] for text in texts]
"""


class Served:
    """A worker and its server."""

    def __init__(self, server: StubServer, worker: Worker, ready: dict[str, Any]) -> None:
        self.server = server
        self.worker = worker
        self.ready = ready

    async def run(self, graph: str, thread_id: str = "t", **members: Any) -> Ended:
        return await self.wait(self.server.run(graph, thread_id, **members))

    async def wait(self, pending: Pending) -> Ended:
        return await asyncio.to_thread(pending.wait)

    async def call(self, op: str, blobs: Any = (), **members: Any) -> Ended:
        return await self.wait(self.server.call({"op": op, **members}, blobs))


async def serve(project: dict[str, Any]) -> tuple[Served, asyncio.Task[None]]:
    server = StubServer({"dependencies": ["."], **project})
    worker = Worker(server.worker_end, asyncio.get_running_loop())
    task = asyncio.create_task(worker.serve("key"))
    ready = await asyncio.to_thread(server.ready.get, True, 60)
    return Served(server, worker, ready), task


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """served(project): a running worker of the project."""
    opened = []
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules = set(sys.modules)

    async def start(project: dict[str, Any] | None = None) -> Served:
        graphs = {name: {"path": spec} if isinstance(spec, str) else spec for name, spec in GRAPHS.items()}
        opened.append(await serve(project or {"folder": str(PROJECT), "graphs": graphs}))
        return opened[-1][0]

    yield start
    for each, task in opened:
        each.server.close()
        # A test may end before the response to `ready` is read.
        await asyncio.gather(task, return_exceptions=True)
        await each.worker.stop()
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if not file or "site-packages" not in file and "/lib/python" not in file:
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """write(files, graphs=…): a project in its own folder."""

    def make(files: dict[str, str], **members: Any) -> dict[str, Any]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {"folder": str(tmp_path), **members}

    return make


def anonymous(value: Any) -> Any:
    """Without ids that differ between two runs of the same."""
    if isinstance(value, dict):
        drop = {"id", "langgraph_checkpoint_ns", "checkpoint_ns", "run_id", "thread_id"}
        return {k: anonymous(v) for k, v in value.items() if k not in drop}
    return [anonymous(each) for each in value] if isinstance(value, list) else value


def local(name: str) -> Any:
    """The same graph, in process."""
    module = importlib.import_module(name)
    found = getattr(module, "graph", None) or getattr(module, "builder", None) or module.workflow
    if hasattr(found, "compile"):
        return found.compile(checkpointer=InMemorySaver())
    return found.copy({"checkpointer": InMemorySaver(), "store": InMemoryStore()})


INPUTS: dict[str, list[Any]] = {
    "chat": [{"messages": [{"role": "user", "content": f"turn {i}"}]} for i in range(2)],
    "react": [{"messages": [{"role": "user", "content": "add(2, 3) multiply(4, 5)"}]}],
    "sends": [{"words": ["a", "bc", "def"]}],
    "nested": [{"ask": True}, Command(resume="gently")],
    "questions": [{"log": ["in"]}, Command(resume="Ann"), Command(resume=44)],
    "functional": [[1, 2, 3], Command(resume=10), [4], Command(resume=1)],
    "memory": [{"fact": "one"}, {"fact": "two"}],
}
MODES = ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"]


@pytest.mark.parametrize("name", INPUTS)
async def test_same_as_in_process(name: str, served: Callable[..., Any]) -> None:
    there = await served()
    graph = local(name)
    config: Any = {"configurable": {"thread_id": "t"}}
    for step in INPUTS[name]:
        expected: dict[str, list[Any]] = {mode: [] for mode in MODES}
        async for ns, mode, chunk in graph.astream(
            step, config, stream_mode=MODES, subgraphs=True, output_keys=graph.output_channels
        ):
            if not ns:
                expected[mode].append(json.loads(render(chunk)))
        members = {"command": {"resume": step.resume}} if isinstance(step, Command) else {"input": step}
        ended = await there.run(name, modes=MODES, subgraphs=True, **members)
        assert ended.kind == ANSWER, ended.head
        for mode in ("values", "updates", "custom"):
            # Parallel tasks finish in any order.
            found = sorted(anonymous(ended.events(mode)), key=json.dumps)
            assert found == sorted(anonymous(expected[mode]), key=json.dumps), mode
        for mode in ("messages", "tasks", "checkpoints", "debug"):
            assert len(ended.events(mode)) == len(expected[mode]), mode
        state = await graph.aget_state(config)
        assert ended.head["status"] == ("interrupted" if state.next else "done")
        output = dict(ended.output)
        asked = [each["value"] for each in output.pop("__interrupt__", [])]
        assert asked == [each.value for each in state.interrupts]
        last = {k: v for k, v in expected["values"][-1].items() if k != "__interrupt__"}
        assert anonymous(output) == anonymous(last)


async def test_streams_of_subgraphs(served: Callable[..., Any]) -> None:
    there = await served()
    ended = await there.run("nested", input={}, modes=["updates"], subgraphs=True)
    names = [[part.split(":")[0] for part in h["ns"].split("|")] for h, _ in ended.pieces]
    assert ["middle", "inner"] in names and ["middle"] in names and [""] in names
    ended = await there.run("nested", "t2", input={}, modes=["updates"])
    assert all(head["ns"] == "" for head, _ in ended.pieces)


async def test_tokens(served: Callable[..., Any]) -> None:
    there = await served()
    said = {"messages": [{"role": "user", "content": "hello"}]}
    ended = await there.run("chat", input=said, modes=["messages"])
    chunks = [chunk for chunk, _ in ended.events("messages") if chunk["type"] == "AIMessageChunk"]
    assert "".join(chunk["content"] for chunk in chunks) == "You said: hello (message 1)"
    assert ended.head["tokens"] == len(chunks)
    metadata = ended.events("messages")[0][1]
    assert metadata["langgraph_node"] == "agent" and metadata["thread_id"] == "t"


async def test_events(served: Callable[..., Any]) -> None:
    there = await served()
    said = {"messages": [{"role": "user", "content": "add(1, 2)"}]}
    ended = await there.run("react", input=said, modes=["events", "values"])
    kinds = {event["event"] for event in ended.events("events")}
    assert {"on_chain_start", "on_chat_model_stream", "on_tool_end", "on_chain_end"} <= kinds
    assert ended.events("values")[-1] == ended.output
    assert ended.output["messages"][-1]["content"] == "The result is 3."


async def test_output_without_a_subscriber(served: Callable[..., Any]) -> None:
    there = await served()
    ended = await there.run("sends", input={"words": ["a"]}, modes=[])
    assert ended.pieces == [] and ended.output["total"] == 3
    ended = await there.run("sends", "t2", input={"words": ["a"]}, quiet=True)
    assert ended.pieces == [] and ended.output["total"] == 3


async def test_cancel(served: Callable[..., Any]) -> None:
    there = await served()
    pending = there.server.run("slow", input={}, modes=["custom"])
    await asyncio.to_thread(pending.next_piece)
    pending.tell(CANCEL)
    ended = await there.wait(pending)
    assert ended.head["status"] == "cancelled"
    # Stored steps stay: the run continues from there.
    ended = await there.run("slow", input={"seconds": 0})
    assert ended.output["log"] == ["begun", "begun", "waited"]


async def test_hold(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    code = (
        (PROJECT / "slow.py")
        .read_text()
        .replace('("waiting")', '("waiting"); [get_stream_writer()(i) for i in range(9)]')
    )
    there = await served(write({"g.py": code}, graphs={"g": {"path": "./g.py:graph"}}))
    pending = there.server.run("g", input={"seconds": 0}, modes=["custom", "values"])
    pending.tell(HOLD)
    pending.tell(GO)
    ended = await there.wait(pending)
    assert ended.head["status"] == "done" and len(ended.events("custom")) == 10
    pending = there.server.run("g", "t2", input={"seconds": 0}, modes=["custom"])
    pending.tell(HOLD)
    # No chunk arrives while it is held: the response to a later call comes first.
    assert (await there.call("ping")).kind == ANSWER
    assert len(pending.ended.pieces) <= 1 and not pending.ended.kind
    pending.tell(GO)
    assert len((await there.wait(pending)).events("custom")) == 10


async def test_failure(served: Callable[..., Any]) -> None:
    there = await served()
    ended = await there.run("failing", input={"log": ["in"]})
    assert ended.head["status"] == "failed"
    error = ended.head["error"]
    assert (error["type"], error["message"]) == ("ValueError", "this always fails")
    assert error["file"].endswith("failing.py") and "raise ValueError" in error["traceback"]
    lines = (PROJECT / "failing.py").read_text().splitlines()
    assert "raise ValueError" in lines[error["line"] - 1]
    assert "site-packages" not in error["traceback"]
    assert ended.output == {"log": ["in", "good"]}


async def test_put_fails(served: Callable[..., Any]) -> None:
    there = await served()
    there.server.fail["put"] = {"type": "Gone", "message": "the thread is deleted", "code": "gone"}
    ended = await there.run("sends", input={"words": ["a"]})
    assert ended.head["status"] == "failed"
    assert ended.head["error"]["message"] == "the thread is deleted"


async def test_factories_and_context(served: Callable[..., Any]) -> None:
    there = await served()
    config = {"configurable": {"thread_id": "t", "tone": "warm"}}
    ended = await there.run("factory", input={}, config=config)
    assert ended.output == {"greeting": "a warm hello"}
    assert (await there.run("session", "s", input={})).output == {"open": True}
    assert (await there.run("context", "a", input={"item": "tea"})).output["price"] == "3 EUR"
    context = {"factor": 2, "unknown": 1}
    ended = await there.run("context", "b", input={"item": "cake"}, context=context)
    assert ended.output["price"] == "10 EUR"


async def test_breakpoints_and_checkpoints(served: Callable[..., Any]) -> None:
    there = await served()
    ended = await there.run("sends", input={"words": ["a"]}, interrupt_before=["gather"])
    assert ended.head["status"] == "interrupted" and ended.output["parts"] == ["0:A"]
    ended = await there.run("sends")
    assert ended.head["status"] == "done" and ended.output["total"] == 3
    thread = there.server.threads["t"]
    first = min(id for ns, id in thread.checkpoints if ns == "")
    ended = await there.run("sends", checkpoint_id=first, durability="sync")
    assert ended.output["parts"] == ["0:A"]
    ended = await there.run("sends", command={"goto": {"node": "work", "input": {"word": "zz", "place": 7}}})
    assert ended.output["parts"][-1] == "7:ZZ"


async def test_update(served: Callable[..., Any]) -> None:
    there = await served()
    steps = [[{"values": {"log": ["made up"]}, "as_node": "begin"}]]
    made = await there.call(
        "update", graph="slow", thread_id="t", config={"configurable": {"thread_id": "t"}}, supersteps=steps
    )
    assert made.kind == ANSWER and made.head["checkpoint_ns"] == ""
    assert ("", made.head["checkpoint_id"]) in there.server.threads["t"].checkpoints
    ended = await there.run("slow", command={"update": {"seconds": 0}})
    assert ended.output["log"] == ["made up", "waited"]
    bad = await there.call("update", graph="slow", thread_id="t", supersteps=[[{"values": {}, "as_node": "nobody"}]])
    assert bad.kind == ERROR and bad.head["type"] == "InvalidUpdateError"


async def test_draw_and_subgraphs(served: Callable[..., Any]) -> None:
    there = await served()
    drawn = (await there.call("draw", graph="nested", xray=False)).output
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "before", "middle", "__end__"]
    assert {"source": "before", "target": "middle"} in drawn["edges"]
    deep = (await there.call("draw", graph="nested", xray=True)).output
    assert "middle:inner:step" in [node["id"] for node in deep["nodes"]]
    found = (await there.call("subgraphs", graph="nested", recurse=True)).output
    assert [*found] == ["middle", "middle|inner"]
    assert found["middle"]["input"]["properties"].keys() == {"ask", "trail"}
    one = (await there.call("subgraphs", graph="nested", namespace="middle", recurse=False)).output
    assert [*one] == ["middle"]


async def test_ready(served: Callable[..., Any]) -> None:
    there = await served()
    graphs = there.ready["graphs"]
    assert [*graphs] == [*GRAPHS]
    nested = graphs["nested"]["structure"]
    assert nested["channels"]["trail"] == "BinaryOperatorAggregate"
    assert nested["reducers"] == {"trail": "add"} and nested["initial"] == {"trail": []}
    inner = nested["nodes"]["middle"]["subgraph"]["nodes"]["inner"]["subgraph"]
    assert inner["nodes"]["step"]["triggers"] == ["branch:to:step"]
    assert graphs["chat"]["structure"]["reducers"] == {"messages": "messages"}
    assert graphs["functional"]["structure"]["kind"] == "functional"
    assert graphs["context"]["schemas"]["context"]["properties"].keys() == {"currency", "factor"}
    assert graphs["session"]["structure"]["nodes"].keys() == {"__start__", "look"}
    assert there.server.hello["runtime"] == "python"


async def test_failures_to_load(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    good = (PROJECT / "slow.py").read_text()
    files = {
        "good.py": good,
        "bad.py": "x = 1\nimport no_such_module\n",
        "syntax.py": "def f(:\n",
        "odd.py": "graph = 3\ndef make(a, b, c): pass\n",
    }
    paths = {
        "good": "./good.py:graph",
        "bad": "./bad.py:graph",
        "syntax": "./syntax.py:graph",
        "odd": "./odd.py:graph",
        "three": "./odd.py:make",
        "nothing": "./good.py:nothing",
        "nowhere": "./nowhere.py:graph",
        "nameless": "./good.py",
        "module": "good:graph",
    }
    there = await served(write(files, graphs={name: {"path": path} for name, path in paths.items()}))
    told = there.ready["graphs"]
    errors = {name: each["error"] for name, each in told.items() if "error" in each}
    assert errors.keys() == paths.keys() - {"good", "module"}
    assert errors["bad"]["type"] == "ModuleNotFoundError" and errors["bad"]["line"] == 2
    assert errors["bad"]["file"].endswith("bad.py")
    assert errors["syntax"]["type"] == "SyntaxError" and errors["syntax"]["file"].endswith("syntax.py")
    assert "it has the graphs builder, graph" in errors["nothing"]["message"]
    assert "no Python file" in errors["nowhere"]["message"] and "no variable" in errors["nameless"]["message"]
    assert (await there.run("good", input={"seconds": 0})).head["status"] == "done"
    ended = await there.run("bad", input={})
    assert ended.head["status"] == "failed" and "no_such_module" in ended.head["error"]["message"]
    ended = await there.run("unknown", input={})
    assert ended.head["status"] == "failed" and "unknown" in ended.head["error"]["message"]


async def test_auth(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    there = await served(write({"auth.py": AUTH}, auth={"path": "./auth.py:auth"}))
    assert set(there.ready["auth"]["handlers"]) == {"*", "threads", "threads.create", "store.put"}
    request: dict[str, Any] = {"method": "GET", "path": "/threads", "query": "q=7", "path_params": {}}
    good = await there.call("authenticate", headers={"Authorization": "ann", "X-One": "1"}, **request)
    user = good.head["user"]
    assert (user["identity"], user["permissions"], user["path"], user["q"]) == ("ann", ["read"], "/threads", "7")
    bad = await there.call("authenticate", headers={"x-one": "1"}, **request)
    assert (bad.kind, bad.head["status"], bad.head["message"]) == (ERROR, 401, "who are you?")
    assert bad.head["headers"] == {"WWW-Authenticate": "Bearer"}
    broken = await there.call("authenticate", headers={"authorization": "broken", "x-one": "1"}, **request)
    assert (broken.head["type"], broken.head["message"]) == ("ValueError", "no database")

    async def authorize(handler: str, value: Any, who: Any = user) -> Ended:
        resource, _, action = handler.partition(".")
        return await there.call(
            "authorize", user=who, resource=resource, action=action or "read", value=value, handler=handler
        )

    assert (await authorize("*", {})).head == {"allow": False}
    assert (await authorize("threads", {"a": 1})).head == {"allow": True, "filter": {"owner": "ann"}}
    created = (await authorize("threads.create", {"thread_id": "x"})).head
    assert created == {"allow": True, "value": {"thread_id": "x", "metadata": {"owner": "ann"}}}
    refused = (await authorize("threads.create", {}, {"identity": "bob"})).head
    assert (refused["status"], refused["message"]) == (403, "may not read")
    assert (await authorize("store.put", {})).head["status"] == 409


async def test_app(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    pytest.importorskip("starlette")
    there = await served(write({"app.py": APP}, app={"path": "./app.py:app"}))
    assert there.ready["app"]["routes"] == ["/custom/{id}", "/stream", "/fail"]
    described = there.ready["app"]["openapi"]
    methods = {path: list(operations) for path, operations in described["paths"].items()}
    assert methods == {"/custom/{id}": ["post"], "/stream": ["get"], "/fail": ["get"]} and described["schemas"] == {}
    assert there.ready["app"]["middleware"] is False
    user = {"identity": "ann", "permissions": []}
    ended = await there.call(
        "request", [b"hello"], method="POST", path="/custom/a%20b", query="q=1",
        headers=[["Content-Type", "text/plain"]], user=user,
    )  # fmt: skip
    (start, _), *rest = ended.pieces
    assert start["status"] == 201 and ["x-two", "2"] in start["headers"]
    body = json.loads(b"".join(blobs[0] for _, blobs in rest))
    assert body == {"id": "a b", "q": "1", "body": "hello", "started": True, "user": "ann"}
    ended = await there.call("request", method="GET", path="/stream", headers=[])
    assert [blobs[0] for _, blobs in ended.pieces[1:]] == [b"part 0", b"part 1", b"part 2"]
    ended = await there.call("request", method="GET", path="/nowhere", headers=[])
    assert ended.pieces[0][0]["status"] == 404
    ended = await there.call("request", method="GET", path="/fail", headers=[])
    assert ended.kind == ERROR or ended.pieces[0][0]["status"] == 500


async def test_embed(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    project = write({"embed.py": EMBED}, embed={"path": "./embed.py:embed"}, index={"dims": 2})
    there = await served(project)
    assert there.ready["embed"] == {}
    ended = await there.call("embed", [b'["a", "abc"]'])
    assert memoryview(ended.blobs[0]).cast("f").tolist() == [1.0, 1.0, 3.0, 1.0]


async def test_delegate(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    code = """
from heddle.runtime import assistant
from langgraph.graph import START, StateGraph
async def first(state): return {"a": await assistant("other").ainvoke(state["a"].get("say", {"x": 1}))}
def second(state): return {"b": assistant("other").invoke({"y": 2})}
from typing_extensions import TypedDict
class State(TypedDict, total=False):
    a: dict
    b: dict
builder = StateGraph(State).add_node(first).add_node(second).add_edge(START, "first").add_edge("first", "second")
"""
    there = await served(write({"g.py": code}, graphs={"g": {"path": "./g.py:builder"}}))
    ended = await there.run("g", input={"a": {}})
    assert ended.output == {"a": {"got": {"x": 1}}, "b": {"got": {"y": 2}}}
    keys = [each["key"] for each in there.server.delegates]
    assert keys[0].startswith("first:") and keys[1].startswith("second:") and len(set(keys)) == 2
    assert all(key.endswith("#1") for key in keys)
    ended = await there.run("g", "asks", input={"a": {"say": "ask"}})
    error = ended.head["error"]
    assert (error["type"], error["message"]) == ("DelegateError", 'assistant "other": its run is interrupted')
    # A cancelled run cancels its pending calls.
    there.server.silent.add("delegate")
    pending = there.server.run("g", "waits", input={"a": {}})
    await asyncio.to_thread(there.server.asked_silently.get, True, 60)
    pending.tell(CANCEL)
    assert (await there.wait(pending)).head["status"] == "cancelled"
    assert len(there.server.cancelled) == 1


async def test_drain(served: Callable[..., Any]) -> None:
    there = await served()
    pending = there.server.run("slow", input={}, modes=["custom"])
    await asyncio.to_thread(pending.next_piece)
    drain = there.server.call({"op": "drain"})
    assert (await there.call("ping")).kind == ANSWER
    assert not drain.ended.kind
    pending.tell(CANCEL)
    assert (await there.wait(pending)).head["status"] == "cancelled"
    assert (await there.wait(drain)).kind == ANSWER
    await asyncio.wait_for(asyncio.shield(there.worker.link.closed), 60)


async def test_changed_files(served: Callable[..., Any], write: Callable[..., Any]) -> None:
    graphs = {"g": {"path": "./g.py:graph"}}
    project = write({"g.py": "import helper\ngraph = helper.graph\n", "helper.py": "x =\n"}, graphs=graphs, reload=True)
    there = await served(project)
    assert there.ready["graphs"]["g"]["error"]["type"] == "SyntaxError"
    path = Path(project["folder"]) / "helper.py"
    deadline = time.monotonic() + 60
    while there.server.changed.empty():
        # Written again until it is detected: the first scan of the files may come after a write.
        path.write_text(f"graph = None  # {time.monotonic()}\n")
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert there.server.changed.get() == [str(path)]
