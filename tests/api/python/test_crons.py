"""crons.*: scheduled runs."""

import datetime
import uuid

import pytest
from clients import until
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError

pytestmark = pytest.mark.beyond_peer("has no crons")
YEARLY = "0 0 1 1 *"


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


@pytest.fixture
async def owner(client):
    """Unique metadata; crons with it are deleted afterwards."""
    mine = {"owner": str(uuid.uuid4())}
    yield mine
    for cron in await client.crons.search(metadata=mine, limit=100):
        await client.crons.delete(cron["cron_id"])


async def test_create(client, owner):
    assistant = await client.assistants.get("echo")
    cron = await client.crons.create("echo", schedule=YEARLY, input={"messages": ["hi"]}, metadata=owner)
    uuid.UUID(cron["cron_id"])
    assert cron["assistant_id"] == assistant["assistant_id"] and cron["schedule"] == YEARLY
    assert cron["thread_id"] is None and cron["enabled"] is True and cron["end_time"] is None
    assert cron["payload"]["assistant_id"] == assistant["assistant_id"]
    assert cron["payload"]["input"] == {"messages": ["hi"]} and cron["metadata"]["owner"] == owner["owner"]
    due = moment(cron["next_run_date"])
    assert (due.month, due.day, due.hour, due.minute) == (1, 1, 0, 0)
    assert due > datetime.datetime.now(datetime.timezone.utc)


async def test_create_for_a_thread(client, thread, owner, unknown):
    cron = await client.crons.create_for_thread(thread, "loop", schedule=YEARLY, input={"count": 0}, metadata=owner)
    assert cron["thread_id"] == thread
    with pytest.raises(NotFoundError):
        await client.crons.create_for_thread(unknown, "loop", schedule=YEARLY)


async def test_time_zones(client, owner):
    cron = await client.crons.create("loop", schedule="30 9 * * *", timezone="Asia/Tokyo", metadata=owner)
    due = moment(cron["next_run_date"]).astimezone(datetime.timezone.utc)
    assert (due.hour, due.minute) == (0, 30) and cron["timezone"] == "Asia/Tokyo"


async def test_wrong_values(client, owner):
    for wrong in ({"schedule": "now and then"}, {"schedule": "99 * * * *"}, {"schedule": "* * * *"}):
        with pytest.raises(UnprocessableEntityError):
            await client.crons.create("echo", metadata=owner, **wrong)
    with pytest.raises(UnprocessableEntityError):
        await client.crons.create("echo", schedule=YEARLY, timezone="Moon/Tranquility", metadata=owner)
    with pytest.raises(NotFoundError):
        await client.crons.create("no-such-graph", schedule=YEARLY, metadata=owner)
    assert await client.crons.count(metadata=owner) == 0


async def test_search_and_count(client, thread, owner):
    first = await client.crons.create("echo", schedule=YEARLY, metadata={**owner, "n": 1})
    second = await client.crons.create_for_thread(thread, "loop", schedule="0 0 2 1 *", metadata=owner, enabled=False)
    assert await client.crons.count(metadata=owner) == 2
    assert await client.crons.count(metadata=owner, thread_id=thread) == 1
    assert await client.crons.count(metadata=owner, assistant_id=first["assistant_id"]) == 1

    async def found(**options):
        return [cron["cron_id"] for cron in await client.crons.search(metadata=owner, **options)]

    one, two = first["cron_id"], second["cron_id"]
    assert await found(sort_by="created_at", sort_order="asc") == [one, two]
    assert await found(sort_by="created_at", sort_order="desc") == [two, one]
    assert await found(enabled=True) == [one] and await found(enabled=False) == [two]
    assert await found(assistant_id=second["assistant_id"]) == [two] and await found(thread_id=thread) == [two]
    assert await found(limit=1, offset=1, sort_by="created_at", sort_order="asc") == [two]
    [selected] = await client.crons.search(metadata={**owner, "n": 1}, select=["cron_id", "schedule"])
    assert selected == {"cron_id": one, "schedule": YEARLY}


async def test_update(client, owner, unknown):
    end = datetime.datetime(2031, 1, 1, tzinfo=datetime.timezone.utc)
    cron = await client.crons.create("loop", schedule=YEARLY, end_time=end, metadata=owner)
    assert moment(cron["end_time"]) == end
    changed = await client.crons.update(
        cron["cron_id"], schedule="15 10 * * *", metadata={"more": 1}, input={"count": 3}
    )
    assert changed["schedule"] == "15 10 * * *" and changed["metadata"]["owner"] == owner["owner"]
    assert changed["metadata"]["more"] == 1 and changed["payload"]["input"] == {"count": 3}
    assert moment(changed["next_run_date"]).minute == 15 and moment(changed["end_time"]) == end
    changed = await client.crons.update(cron["cron_id"], end_time=None, enabled=False)
    assert changed["end_time"] is None and changed["enabled"] is False
    with pytest.raises(NotFoundError):
        await client.crons.update(unknown, enabled=True)
    with pytest.raises(UnprocessableEntityError):
        await client.crons.update(cron["cron_id"], schedule="never")


async def test_delete(client, owner):
    cron = await client.crons.create("loop", schedule=YEARLY, metadata=owner)
    assert await client.crons.delete(cron["cron_id"]) is None
    assert await client.crons.search(metadata=owner) == []
    with pytest.raises(NotFoundError):
        await client.crons.delete(cron["cron_id"])


async def test_it_fires(client, thread, owner, request):
    if "sync]" in request.node.name and "async]" not in request.node.name:
        pytest.skip("a minute of waiting is enough once")
    cron = await client.crons.create_for_thread(
        thread, "loop", schedule="* * * * *", input={"count": 0}, metadata=owner
    )

    async def fired():
        return await client.runs.list(thread)

    runs = await until(fired, seconds=180)
    values = await client.runs.join(thread, runs[-1]["run_id"])
    assert values["count"] == 5
    assert runs[-1]["kwargs"]["config"]["configurable"]["cron_id"] == cron["cron_id"]
    [after] = await client.crons.search(metadata=owner)
    assert moment(after["next_run_date"]) > moment(cron["next_run_date"])
