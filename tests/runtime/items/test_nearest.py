"""Semantic search on PostgreSQL: with the vector extension, and without it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import urllib.parse

import pytest
from langgraph_sdk import get_sync_client
from programs import wait_for

DIMS = 24

# The texts are the vectors.
EMBED = """
import json


async def embed(texts):
    return [json.loads(text) for text in texts]
"""
GRAPH = """
from typing_extensions import TypedDict
from langgraph.graph import StateGraph


class State(TypedDict):
    n: int


graph = StateGraph(State).add_node("work", lambda state: state).set_entry_point("work").compile()
"""


def sql(url: str, text: str) -> str:
    command = ["psql", url, "-v", "ON_ERROR_STOP=1", "-qAt", "-c", text]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def in_database(name: str, user: str | None = None) -> str:
    parts = urllib.parse.urlsplit(os.environ["HEDDLE_TEST_PG_URL"])
    place = f"{user}:pw@{parts.hostname}:{parts.port}" if user else parts.netloc
    return f"postgresql://{place}/{name}"


@pytest.fixture(scope="module")
def served(project_module):
    """Two servers, the second with a user who may not create extensions."""
    first = os.environ["HEDDLE_TEST_PG_URL"]
    if not sql(first, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("PostgreSQL has no extension vector here")
    sql(first, "CREATE DATABASE near_with")
    sql(first, "CREATE DATABASE near_without")
    sql(first, "CREATE ROLE near_user LOGIN PASSWORD 'pw'")
    sql(in_database("near_without"), "CREATE SCHEMA heddle AUTHORIZATION near_user")
    config = {
        "dependencies": ["."],
        "graphs": {"some": "./graph.py:graph"},
        "store": {"index": {"dims": DIMS, "embed": "./embed.py:embed", "fields": ["text", "more[*]"]}},
    }
    return [
        project_module(
            config=config, files={"graph.py": GRAPH, "embed.py": EMBED}, options=["--store", f"{url}?schema=heddle"]
        )
        for url in (in_database("near_with"), in_database("near_without", "near_user"))
    ]


def has_column(name: str) -> bool:
    found = sql(in_database(name), "SELECT 1 FROM pg_attribute WHERE attname = 'meaning' AND NOT attisdropped")
    return found != ""


def vector(draw: random.Random) -> str:
    return json.dumps([round(draw.uniform(-1, 1), 4) for _ in range(DIMS)])


def some_items(draw: random.Random) -> list[dict]:
    """Some have the same vectors, some several, some none, some are put again without, or deleted."""
    vectors = [vector(draw) for _ in range(120)]
    found = []
    for n in range(240):
        value = {"n": n, "kind": draw.choice("abc")}
        if n % 12:
            value["text"] = draw.choice(vectors)
        if n % 5 == 0:
            value["more"] = [draw.choice(vectors) for _ in range(draw.randrange(3))]
        found.append(
            {
                "namespace": draw.choice([["s"], ["s", "x"], ["s", "x", "y"], ["s-x"], ["t"]]),
                "key": f"k{n}",
                "value": value,
            }
        )
    found += [dict(draw.choice(found), index=False) for _ in range(8)]
    found += [dict(draw.choice(found), value={"text": draw.choice(vectors), "kind": "a"}) for _ in range(8)]
    return found


def searches(draw: random.Random):
    for _ in range(40):
        options = {
            "query": vector(draw),
            "limit": draw.choice([1, 3, 10, 40, 300]),
            "offset": draw.choice([0, 0, 1, 7, 50]),
        }
        if draw.random() < 0.4:
            options["filter"] = draw.choice([{"kind": "a"}, {"n": {"$lt": 20}}, {"n": 7}, {"n": -1}])
        yield draw.choice([["s"], ["s", "x"], ["s", "x", "y"], ["t"], [], ["nothing"]]), options


def shown(server, namespace, options):
    found = get_sync_client(url=server.url).store.search_items(namespace, **options)["items"]
    return [(item["namespace"], item["key"], item["score"], item["value"]) for item in found]


def same(served, namespace, options):
    found, other = (shown(server, namespace, options) for server in served)
    assert found == other, (namespace, options)
    return found


def test_both_search_methods_find_the_same(served):
    draw = random.Random(5)
    items = some_items(draw)
    gone = [draw.choice(items) for _ in range(8)]
    for server in served:
        store = get_sync_client(url=server.url).store
        for item in items:
            rest = {name: item[name] for name in item.keys() & {"index"}}
            store.put_item(item["namespace"], item["key"], item["value"], **rest)
        for item in gone:
            store.delete_item(item["namespace"], item["key"])
    total = sum(len(same(served, namespace, options)) for namespace, options in searches(draw))
    assert total > 500
    assert has_column("near_with") and not has_column("near_without")


def test_expired_items_are_found_by_neither(served):
    draw = random.Random(6)
    text = vector(draw)
    for server in served:
        store = get_sync_client(url=server.url).store
        for n in range(60):
            store.put_item(["over"], f"k{n}", {"text": text if n % 2 else vector(random.Random(1000 + n))})
        store.put_item(["over"], "short", {"text": text}, ttl=0.001)
        search = {"query": text, "limit": 100}
        wait_for(
            lambda server=server, search=search: "short" not in [found[1] for found in shown(server, ["over"], search)]
        )
    for limit in (1, 5, 29, 30, 31, 100):
        found = same(served, ["over"], {"query": text, "limit": limit})
        assert [key for _, key, _, _ in found[:30]] == [f"k{n}" for n in range(59, 0, -2)][:limit]


def test_many_near_items_excluded_by_the_filter(served):
    draw = random.Random(7)
    text = vector(draw)
    for server in served:
        store = get_sync_client(url=server.url).store
        for n in range(200):
            store.put_item(["far"], f"k{n}", {"text": text if n < 180 else vector(random.Random(1000 + n)), "n": n})
    found = same(served, ["far"], {"query": text, "limit": 3, "filter": {"n": {"$gte": 180}}})
    assert len(found) == 3
    found = same(served, ["far"], {"query": text, "limit": 3})
    assert [key for _, key, _, _ in found] == ["k179", "k178", "k177"]
