"""Archives in a real Chroma, with vectors from the scripted model."""

from __future__ import annotations

import httpx
import pytest

CHUNK = {"layer": "chunk"}


@pytest.fixture(scope="session")
def archives(fill):
    fill("animals", {
        "cats sleep all day": CHUNK | {"source": "cats.pdf", "page_number": 3, "section_heading": "Sleep"},
        "dogs chase cats": CHUNK | {"source": "dogs.pdf"},
        "birds sing at dawn": CHUNK,
        "cats sleep all day long": {"layer": "page"},
    })  # fmt: skip
    fill("plants", {"roses need water": CHUNK, "cats sleep under roses": CHUNK | {"title": "Garden"}})


@pytest.fixture
def config(archives, chroma, embeddings):
    """config(names, …): the value of `rag_config`."""

    def make(*names: str, **more) -> dict:
        listed = [{"name": name.title(), "collection_name": name, "chromadb_url": chroma} for name in names]
        return {"archives": listed, "embeddings_url": embeddings.url, **more}

    return make


def test_the_nearest_of_all_archives_are_found(search, config):
    (message,), problems = search(
        "archives", "search_archives", {"query": "cats sleep all day"}, rag_config=config("animals", "plants")
    )
    assert problems == [] and message["status"] == "success"
    assert message["additional_kwargs"] == {"read_only": True}
    first, second, *_ = message["content"].split("\n\n")
    assert first == "[1] Animals, cats.pdf, 3, Sleep\ncats sleep all day"
    assert second == "[2] Plants, Garden\ncats sleep under roses"
    # Only chunks, five at most.
    assert "long" not in message["content"] and message["content"].count("[") == 5
    found = message["artifact"]
    assert [each["archive"] for each in found[:2]] == ["Animals", "Plants"]
    assert found[0]["distance"] < found[1]["distance"] and found[0]["metadata"]["source"] == "cats.pdf"


@pytest.mark.parametrize(("asked", "expected"), [(1, 1), (2, 2), (0, 1), (100, 5)])
def test_the_requested_number_of_results(search, config, asked, expected):
    (message,), _ = search(
        "archives", "search_archives", {"query": "cats", "top_k": asked}, rag_config=config("animals", "plants")
    )
    assert len(message["artifact"]) == expected


def test_one_vector_is_made_for_each_model(search, config, embeddings):
    listed = config("animals", "plants")
    listed["archives"][1]["embedding_model"] = "another"
    before = len(embeddings.requests("/v1/embeddings"))
    messages, _ = search("archives", "search_archives", [{"query": "cats"}], rag_config=listed)
    asked = [request["body"]["model"] for request in embeddings.requests("/v1/embeddings")[before:]]
    assert sorted(asked) == ["another", "jinaai/jina-embeddings-v2-base-de"]
    assert messages[0]["status"] == "success"


def test_unreachable_archives_are_named(search, config, scripted):
    broken = scripted(lambda peer, request: peer.answer(500, "no"))
    value = config("animals", "nothing")
    value["archives"].append({"name": "Broken", "collection_name": "x", "chromadb_url": broken.url})
    (message,), _ = search("archives", "search_archives", {"query": "cats sleep all day", "top_k": 1}, rag_config=value)
    assert message["status"] == "success"
    hit, *failed = message["content"].split("\n\n")
    assert hit.startswith("[1] Animals")
    assert failed == ["[!] Nothing: it does not exist (HTTP status 404)", "[!] Broken: HTTP status 500"]


def test_no_archive_at_all_is_an_error(search, config):
    (message,), _ = search("archives", "search_archives", {"query": "cats"}, rag_config=config("nothing"))
    assert message["status"] == "error" and "[!] Nothing" in message["content"]


def test_no_vector_is_an_error(search, config, scripted):
    odd = scripted(lambda peer, request: peer.answer(200, {"data": [{"embedding": ["x"]}]}))
    (message,), _ = search(
        "archives", "search_archives", {"query": "cats"}, rag_config=config("animals", embeddings_url=odd.url)
    )
    assert message["status"] == "error" and "no embedding of the query" in message["content"]


def test_no_results_are_reported(search, config, fill):
    fill("empty", {"x": {"layer": "page"}})
    (message,), _ = search("archives", "search_archives", {"query": "cats"}, rag_config=config("empty"))
    assert (message["content"], message["status"]) == ("No results.", "success")


def test_the_key_reaches_only_the_embeddings(search, config, server, scripted, chroma, embeddings):
    key = "sk-embeddings-0815"

    def forward(peer, request):
        answer = httpx.post(
            embeddings.base_url + "/embeddings",
            content=request.body,
            headers={"content-type": "application/json"},
            timeout=60,
        )
        peer.answer(200, answer.content, content_type="application/json")

    proxy = scripted(forward)
    value = config("animals", embeddings_url=proxy.url + "/v1", embeddings_api_key=key)
    (message,), _ = search("archives", "search_archives", {"query": "cats"}, rag_config=value)
    assert message["status"] == "success"
    assert proxy.requests[0].path == "/v1/embeddings"
    assert proxy.requests[0].headers["authorization"] == f"Bearer {key}"
    assert key.encode() not in server.database()


def test_the_environment_completes_the_configuration(search, server_with, archives, chroma, embeddings):
    env = {
        "DOCPROC_CHROMADB_URL": chroma,
        "DOCPROC_TEI_EMBEDDINGS_URL": embeddings.url,
        "RAG_DEFAULT_LAYER": "",
        "RAG_DEFAULT_TOP_K": "1",
    }
    value = {"archives": [{"collection_name": "animals"}]}
    query = {"query": "cats sleep all day long"}
    (message,), _ = search("archives", "search_archives", query, server=server_with(env), rag_config=value)
    # Any layer, one result, the collection's name.
    assert message["content"] == "[1] animals\ncats sleep all day long"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x", "must be"),
        ({"archives": [{}]}, "collection_name"),
        ({"archives": [{"collection_name": "a", "chromadb_url": "ftp://x"}]}, "chromadb_url"),
        ({"archives": [{"collection_name": "a"}]}, "DOCPROC_TEI_EMBEDDINGS_URL"),
    ],
)
def test_an_invalid_configuration_names_the_error(search, value, says):
    (message,), (problem,) = search("archives", "search_archives", {"query": "x"}, rag_config=value)
    assert says in problem and message["status"] == "error"
