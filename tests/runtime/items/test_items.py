"""The store in graphs and through the API: the same items, and semantic search."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from langgraph_sdk import get_sync_client

GRAPH = """
from typing import Annotated, Any
from operator import add
from typing_extensions import TypedDict
from langgraph.config import get_store
from langgraph.graph import StateGraph


class State(TypedDict):
    ask: list[Any]
    said: Annotated[list[Any], add]


def shown(item):
    return {"key": item.key, "value": item.value, "namespace": list(item.namespace),
            "score": getattr(item, "score", None)}


async def work(state):
    store = get_store()
    said = []
    for op, *args in state["ask"]:
        if op == "put":
            namespace, key, value, *index = args
            await store.aput(tuple(namespace), key, value, *index)
        elif op == "get":
            item = await store.aget(tuple(args[0]), args[1])
            said.append(item and shown(item))
        elif op == "delete":
            await store.adelete(tuple(args[0]), args[1])
        elif op == "search":
            found = await store.asearch(tuple(args[0]), **args[1])
            said.append([shown(item) for item in found])
        elif op == "namespaces":
            said.append([list(name) for name in await store.alist_namespaces(**args[0])])
    return {"said": said}


def work_sync(state):
    store = get_store()
    store.put(("sync",), "k", {"n": 1})
    return {"said": [shown(store.get(("sync",), "k"))]}


graph = StateGraph(State).add_node(work).set_entry_point("work").compile()
sync_graph = StateGraph(State).add_node(work_sync).set_entry_point("work_sync").compile()
"""

# A vector of word counts.
EMBED = """
WORDS = ["cat", "milk", "moon", "rocket"]


async def embed(texts):
    if any("explode" in text for text in texts):
        raise ValueError("no")
    return [[float(text.count(word)) for word in WORDS] for text in texts]
"""

SCRIPT = """
import { Annotation, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({
  said: Annotation<unknown[]>({ reducer: (old, more) => old.concat(more), default: () => [] }),
});

async function work(_state: typeof State.State, config: LangGraphRunnableConfig) {
  const store = config.store!;
  await store.put(["js", "x"], "a", { text: "cat milk" });
  await store.put(["js", "x"], "b", { text: "moon rocket" });
  await store.put(["js", "y"], "c", { text: "moon" });
  const item = await store.get(["js", "x"], "a");
  const found = await store.search(["js"], { query: "moon" });
  await store.delete(["js", "x"], "a");
  const gone = await store.get(["js", "x"], "a");
  return { said: [item?.value, found.map((one) => [one.key, one.score ?? null]), gone] };
}

export const graph = new StateGraph(State).addNode("work", work).addEdge("__start__", "work").compile();
"""

SCRIPT_EMBED = """
const words = ["cat", "milk", "moon", "rocket"];

export async function embed(texts: string[]): Promise<number[][]> {
  return texts.map((text) => words.map((word) => text.split(word).length - 1));
}
"""


def call(server, path, body, method="POST"):
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def config(**index):
    found = {
        "dependencies": ["."],
        "graphs": {"store": "./graph.py:graph", "sync": "./graph.py:sync_graph"},
    }
    return found | ({"store": {"index": index}} if index else {})


@pytest.fixture(scope="module")
def plain(project_module):
    return project_module(config=config(), files={"graph.py": GRAPH})


@pytest.fixture(scope="module")
def meaning(project_module):
    return project_module(
        config=config(dims=4, embed="./embed.py:embed", fields=["text"]),
        files={"graph.py": GRAPH, "embed.py": EMBED},
    )


def run(server, *ask, graph="store"):
    client = get_sync_client(url=server.url)
    return client.runs.wait(None, graph, input={"ask": list(ask), "said": []})["said"]


def test_items_of_graphs_are_those_of_the_api(plain):
    client = get_sync_client(url=plain.url)
    client.store.put_item(["users", "1"], "name", {"text": "Ann"})
    said = run(
        plain,
        ["get", ["users", "1"], "name"],
        ["put", ["users", "2"], "name", {"text": "Bob", "n": 1.0, "deep": {"list": [None, True]}}],
        ["get", ["users", "2"], "nobody"],
        ["get", ["users", "2"], "name"],
    )
    assert said[0] == {
        "key": "name", "namespace": ["users", "1"], "score": None, "value": {"text": "Ann"},
    }  # fmt: skip
    assert said[1] is None
    assert said[2]["value"] == {"text": "Bob", "n": 1.0, "deep": {"list": [None, True]}}
    assert client.store.get_item(["users", "2"], "name")["value"] == said[2]["value"]
    run(plain, ["delete", ["users", "2"], "name"])
    assert client.store.search_items(["users", "2"])["items"] == []


def test_search_and_namespaces_in_graphs(plain):
    puts = [["put", ["s", str(n % 2)], f"k{n}", {"n": n}] for n in range(6)]
    found, some, names, below = run(
        plain,
        *puts,
        ["search", ["s"], {"filter": {"n": {"$gte": 3}}}],
        ["search", ["s", "0"], {"limit": 2, "offset": 1}],
        ["namespaces", {"prefix": ["s"]}],
        ["namespaces", {"prefix": ["s"], "suffix": ["1"], "max_depth": 2}],
    )
    assert sorted(item["key"] for item in found) == ["k3", "k4", "k5"]
    assert [item["key"] for item in some] == ["k2", "k0"]
    assert names == [["s", "0"], ["s", "1"]]
    assert below == [["s", "1"]]


def test_sync_nodes_have_the_store(plain):
    assert run(plain, graph="sync")[0]["value"] == {"n": 1}


def test_the_nearest_come_first(meaning):
    found = run(
        meaning,
        ["put", ["m"], "a", {"text": "cat milk"}],
        ["put", ["m"], "b", {"text": "moon rocket"}],
        ["put", ["m"], "c", {"text": "moon moon milk"}],
        ["put", ["m"], "d", {"text": "moon"}, False],
        ["put", ["m"], "e", {"text": "cat", "more": [{"of": "cat"}, {"of": "rocket rocket"}]}, ["more[*].of"]],
        ["search", ["m"], {"query": "the moon"}],
        ["search", ["m"], {"query": "rocket", "limit": 1}],
        ["search", ["m"], {"query": "milk", "filter": {"text": "cat milk"}}],
    )
    assert [item["key"] for item in found[0]] == ["c", "b", "e", "a", "d"]
    scores = [item["score"] for item in found[0]]
    assert scores[0] == pytest.approx(2 / 5**0.5, abs=1e-6)
    assert scores[1] == pytest.approx(1 / 2**0.5, abs=1e-6)
    assert scores[2:] == [0, 0, None]
    assert [(item["key"], item["score"]) for item in found[1]] == [("e", pytest.approx(1, abs=1e-6))]
    assert [item["key"] for item in found[2]] == ["a"]

    api = call(meaning, "/store/items/search", {"namespace_prefix": ["m"], "query": "moon", "limit": 2})
    assert [item["key"] for item in api["items"]] == ["c", "b"]
    assert api["items"][0]["score"] == pytest.approx(scores[0], abs=1e-6)


def test_a_changed_item_is_found_by_its_new_text(meaning):
    put = {"namespace": ["n"], "key": "k", "value": {"text": "cat"}}
    search = {"namespace_prefix": ["n"], "query": "cat"}
    call(meaning, "/store/items", put, "PUT")
    assert call(meaning, "/store/items/search", search)["items"][0]["score"] == pytest.approx(1)
    call(meaning, "/store/items", put | {"value": {"text": "rocket"}}, "PUT")
    assert call(meaning, "/store/items/search", search)["items"][0]["score"] == 0
    call(meaning, "/store/items", put | {"index": False}, "PUT")
    assert call(meaning, "/store/items/search", search)["items"][0]["score"] is None
    call(meaning, "/store/items", put, "PUT")
    call(meaning, "/store/items", {"namespace": ["n"], "key": "k"}, "DELETE")
    assert call(meaning, "/store/items/search", search)["items"] == []
    call(meaning, "/store/items", put | {"value": {"other": 1}}, "PUT")
    assert call(meaning, "/store/items/search", search)["items"][0]["score"] is None


def test_an_item_without_a_vector_is_not_stored(meaning):
    put = {"namespace": ["x"], "key": "k", "value": {"text": "explode"}}
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(meaning, "/store/items", put, "PUT")
    assert caught.value.code == 503
    assert "the function failed" in caught.value.read().decode()
    assert call(meaning, "/store/items/search", {"namespace_prefix": ["x"]})["items"] == []
    for index in (3, [1], {}):
        with pytest.raises(urllib.error.HTTPError) as caught:
            call(meaning, "/store/items", put | {"index": index}, "PUT")
        assert caught.value.code == 422


def test_typescript(project):
    server = project(
        config={
            "graphs": {"store": "./graph.ts:graph"},
            "store": {"index": {"dims": 4, "embed": "./embed.ts:embed", "fields": ["text"]}},
        },
        files={"graph.ts": SCRIPT, "embed.ts": SCRIPT_EMBED},
    )
    client = get_sync_client(url=server.url)
    item, found, gone = client.runs.wait(None, "store", input={"said": []})["said"]
    assert item == {"text": "cat milk"}
    assert found == [["c", 1], ["b", pytest.approx(1 / 2**0.5, abs=1e-6)], ["a", 0]]
    assert gone is None
    assert client.store.get_item(["js", "x"], "b")["value"] == {"text": "moon rocket"}


def test_a_server_of_embeddings(heddle, mock):
    model = mock()
    server = heddle(
        config={"store": {"index": {"dims": 64, "embed": "openai:any", "fields": ["text"]}}},
        env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none"},
    )
    for key, text in {"a": "cats like milk", "b": "rockets fly to the moon"}.items():
        call(server, "/store/items", {"namespace": ["n"], "key": key, "value": {"text": text}}, "PUT")
    found = call(server, "/store/items/search", {"namespace_prefix": ["n"], "query": "moon rockets"})
    assert [item["key"] for item in found["items"]] == ["b", "a"]
    assert found["items"][0]["score"] > found["items"][1]["score"]
