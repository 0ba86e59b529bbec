"""store.*: items that outlive threads."""

import asyncio
import uuid

import pytest
from clients import until
from langgraph_sdk.errors import BadRequestError, UnprocessableEntityError
from load import Pace


@pytest.fixture
def place() -> str:
    """A unique first label."""
    return f"test-{uuid.uuid4()}"


async def test_put_and_get(client, place):
    assert await client.store.put_item([place, "users"], "ada", {"name": "Ada", "age": 36}) is None
    item = await client.store.get_item([place, "users"], "ada")
    assert item["namespace"] == [place, "users"] and item["key"] == "ada"
    assert item["value"] == {"name": "Ada", "age": 36} and item["created_at"] and item["updated_at"]


async def test_put_replaces(client, place):
    await client.store.put_item([place], "k", {"n": 1, "gone": True})
    first = await client.store.get_item([place], "k")
    await client.store.put_item([place], "k", {"n": 2})
    second = await client.store.get_item([place], "k")
    assert second["value"] == {"n": 2} and second["created_at"] == first["created_at"]
    assert second["updated_at"] >= first["updated_at"]


async def test_keys_may_be_anything(client, place):
    for key in ("a b", "ä/ö?&=#%", "with.dots", "🧶"):
        await client.store.put_item([place], key, {"key": key})
        assert (await client.store.get_item([place], key))["value"] == {"key": key}


async def test_get_a_missing_item(client, place):
    assert await client.store.get_item([place], "nothing") is None


async def test_delete(client, place):
    await client.store.put_item([place], "k", {"n": 1})
    assert await client.store.delete_item([place], "k") is None
    assert await client.store.get_item([place], "k") is None
    assert await client.store.delete_item([place], "k") is None  # deleting it again succeeds too


async def test_labels_may_not_have_dots(client, place):
    with pytest.raises(ValueError):
        await client.store.put_item([place, "a.b"], "k", {})


async def test_an_empty_namespace(client):
    with pytest.raises((BadRequestError, UnprocessableEntityError)):
        await client.store.put_item([], "k", {"n": 1})


@pytest.mark.beyond_peer("answers 400")
async def test_wrong_values(client, place):
    with pytest.raises(UnprocessableEntityError):
        await client.store.put_item([place], "k", ["no", "object"])
    with pytest.raises(UnprocessableEntityError):
        await client.store.put_item([place], "k", {}, ttl="soon")
    with pytest.raises(UnprocessableEntityError):
        await client.store.search_items([place], limit=0)


async def fill(client, place):
    for number in range(5):
        await client.store.put_item(
            [place, "even" if number % 2 == 0 else "odd"], f"k{number}", {"n": number, "s": "x"}
        )


async def test_search(client, place):
    await fill(client, place)
    found = (await client.store.search_items([place]))["items"]
    assert {item["key"] for item in found} == {"k0", "k1", "k2", "k3", "k4"}
    found = (await client.store.search_items([place, "odd"]))["items"]
    assert {item["key"] for item in found} == {"k1", "k3"}
    pages = [(await client.store.search_items([place], limit=2, offset=offset))["items"] for offset in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({item["key"] for page in pages for item in page}) == 5
    assert (await client.store.search_items([place, "nowhere"]))["items"] == []


@pytest.mark.beyond_peer("compares the joined text")
async def test_a_prefix_is_of_whole_labels(client, place):
    await client.store.put_item([place, "user"], "k", {})
    await client.store.put_item([place, "users"], "k", {})
    assert [i["namespace"] for i in (await client.store.search_items([place, "user"]))["items"]] == [[place, "user"]]


async def test_search_with_filters(client, place):
    await fill(client, place)

    async def keys(condition):
        return {item["key"] for item in (await client.store.search_items([place], filter=condition))["items"]}

    assert await keys({"n": 3}) == {"k3"}
    assert await keys({"n": 3, "s": "x"}) == {"k3"}
    assert await keys({"n": 3, "s": "y"}) == set()
    assert await keys({"n": {"$gt": 2}}) == {"k3", "k4"}
    assert await keys({"n": {"$gte": 1, "$lt": 3}}) == {"k1", "k2"}
    assert await keys({"n": {"$lte": 0}}) == {"k0"}
    assert await keys({"n": {"$eq": 2}}) == {"k2"}
    assert await keys({"n": {"$ne": 2}}) == {"k0", "k1", "k3", "k4"}


async def test_namespaces(client, place):
    for path in (["a"], ["a", "x"], ["a", "y", "deep"], ["b", "x"]):
        await client.store.put_item([place, *path], "k", {})

    async def found(**options):
        answer = await client.store.list_namespaces(prefix=[place, *options.pop("prefix", [])], **options)
        return sorted(each[1:] for each in answer["namespaces"])

    assert await found() == [["a"], ["a", "x"], ["a", "y", "deep"], ["b", "x"]]
    assert await found(prefix=["a"]) == [["a"], ["a", "x"], ["a", "y", "deep"]]
    assert await found(suffix=["x"]) == [["a", "x"], ["b", "x"]]
    assert await found(prefix=["*", "x"]) == [["a", "x"], ["b", "x"]]
    assert await found(max_depth=2) == [["a"], ["b"]]
    assert len(await found(limit=2)) == 2
    assert len(await found(limit=3, offset=3)) == 1


@pytest.mark.beyond_peer("knows no ttl")
async def test_items_expire(client, place):
    await client.store.put_item([place], "long", {"n": 1}, ttl=60)
    pace = Pace(12)
    await client.store.put_item([place], "short", {"n": 1}, ttl=0.2)  # 12 s

    async def gone():
        # Reading must not extend its lifetime here.
        return await client.store.get_item([place], "short", refresh_ttl=False) is None

    assert not await gone() or pace.was_lost()  # the machine paused too long
    await until(gone)
    assert (await client.store.get_item([place], "long"))["value"] == {"n": 1}
    found = (await client.store.search_items([place], refresh_ttl=False))["items"]
    assert [item["key"] for item in found] == ["long"]


@pytest.mark.beyond_peer("knows no ttl")
async def test_reading_keeps_items_alive(client, place):
    for key in map(str, range(5)):  # retries if the machine paused so long that the item may have expired
        pace = Pace(6)
        await client.store.put_item([place], key, {"n": 1}, ttl=0.1)  # 6 s
        for _ in range(14):
            await asyncio.sleep(0.5)
            item = await client.store.get_item([place], key, refresh_ttl=True)
            pace()
        if item or not pace.was_lost():
            break
    assert item is not None


async def test_index_is_taken(client, place):
    await client.store.put_item([place], "k", {"n": 1}, index=False)
    await client.store.put_item([place], "l", {"n": 1}, index=["n"])
    found = (await client.store.search_items([place]))["items"]
    assert {item["key"] for item in found} == {"k", "l"}
