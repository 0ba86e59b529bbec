"""assistants.*: create, update, search, draw."""

import uuid

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

NAMESPACE = uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


@pytest.fixture
async def assistant(client):
    made = await client.assistants.create(
        "echo",
        {"tags": ["a"], "recursion_limit": 7, "configurable": {"user": "ada"}},
        name="Ada's echo",
        description="echoes",
        metadata={"owner": "ada", "team": {"id": 1, "name": "x"}},
    )
    yield made
    try:
        await client.assistants.delete(made["assistant_id"])
    except NotFoundError:
        pass


async def test_a_graph_has_a_system_assistant(client):
    found = await client.assistants.get("echo")
    assert found["assistant_id"] == str(uuid.uuid5(NAMESPACE, "echo"))
    assert found["graph_id"] == "echo" and found["name"] == "echo" and found["version"] == 1
    assert found["metadata"]["created_by"] == "system"
    assert (await client.assistants.get(found["assistant_id"]))["assistant_id"] == found["assistant_id"]


async def test_create_returns_the_given_members(assistant):
    uuid.UUID(assistant["assistant_id"])
    assert assistant["graph_id"] == "echo" and assistant["version"] == 1
    assert assistant["name"] == "Ada's echo" and assistant["description"] == "echoes"
    assert assistant["metadata"] == {"owner": "ada", "team": {"id": 1, "name": "x"}}
    assert assistant["config"]["configurable"] == {"user": "ada"}
    assert assistant["config"]["tags"] == ["a"] and assistant["config"]["recursion_limit"] == 7
    assert assistant["created_at"] and assistant["updated_at"]


async def test_create_with_nothing_but_a_graph(client):
    made = await client.assistants.create("loop")
    assert made["name"] == "Untitled" and made["metadata"] == {} and made["config"] == {}
    await client.assistants.delete(made["assistant_id"])


async def test_create_twice(client, assistant):
    same = assistant["assistant_id"]
    with pytest.raises(ConflictError):
        await client.assistants.create("echo", assistant_id=same)
    with pytest.raises(ConflictError):
        await client.assistants.create("echo", assistant_id=same, if_exists="raise")
    kept = await client.assistants.create("loop", assistant_id=same, if_exists="do_nothing", name="other")
    assert kept["graph_id"] == "echo" and kept["name"] == "Ada's echo"


@pytest.mark.beyond_peer("takes any graph id")
async def test_create_for_an_unknown_graph(client):
    with pytest.raises(NotFoundError):
        await client.assistants.create("no-such-graph")


@pytest.mark.beyond_peer("answers 400 to invalid requests, and does not compare context with configurable")
async def test_create_with_wrong_values(client):
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.create("echo", assistant_id="not-a-uuid")
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.create("echo", if_exists="perhaps")
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.create(None)


@pytest.mark.beyond_peer("keeps configurable and context apart")
async def test_context_and_configurable_are_one(client):
    made = await client.assistants.create("echo", context={"user": "bob"})
    assert made["context"] == {"user": "bob"} and made["config"]["configurable"] == {"user": "bob"}
    await client.assistants.delete(made["assistant_id"])


async def test_get_unknown(client, unknown):
    with pytest.raises(NotFoundError):
        await client.assistants.get(unknown)


@pytest.mark.beyond_peer("has no JSON in its errors")
async def test_errors_carry_the_text(client, unknown):
    with pytest.raises(NotFoundError, match="Assistant not found"):
        await client.assistants.get(unknown)


async def test_update_makes_a_version(client, assistant):
    same = assistant["assistant_id"]
    second = await client.assistants.update(same, name="renamed", metadata={"team": 2})
    assert second["version"] == 2 and second["name"] == "renamed" and second["graph_id"] == "echo"
    assert second["metadata"] == {"owner": "ada", "team": 2}  # merged
    assert second["config"]["configurable"] == {"user": "ada"}  # kept
    third = await client.assistants.update(same, graph_id="loop", config={"configurable": {"user": "eve"}})
    assert third["version"] == 3 and third["graph_id"] == "loop"
    assert third["config"] == {"configurable": {"user": "eve"}}  # replaced
    described = await client.assistants.update(same, description="new words", context=None)
    assert described["version"] == 4 and described["description"] == "new words"


async def test_update_unknown(client, unknown):
    with pytest.raises(NotFoundError):
        await client.assistants.update(unknown, name="x")


async def test_versions_and_latest(client, assistant):
    same = assistant["assistant_id"]
    for number in (2, 3):
        await client.assistants.update(same, name=f"name {number}", metadata={"number": number})
    versions = await client.assistants.get_versions(same)
    assert [version["version"] for version in versions] == [3, 2, 1]
    assert [version["name"] for version in versions] == ["name 3", "name 2", "Ada's echo"]
    assert [v["version"] for v in await client.assistants.get_versions(same, limit=1, offset=1)] == [2]
    assert [v["version"] for v in await client.assistants.get_versions(same, metadata={"number": 3})] == [3]
    back = await client.assistants.set_latest(same, 1)
    assert back["version"] == 1 and back["name"] == "Ada's echo"
    assert (await client.assistants.get(same))["name"] == "Ada's echo"
    assert (await client.assistants.update(same, name="again"))["version"] == 4
    with pytest.raises(NotFoundError):
        await client.assistants.set_latest(same, 99)


async def test_search_and_count(client):
    owner = str(uuid.uuid4())
    made = [
        await client.assistants.create(
            graph, name=f"N{number}", metadata={"owner": owner, "deep": {"n": number, "x": 1}}
        )
        for number, graph in enumerate(("echo", "loop", "echo"))
    ]
    mine = {"owner": owner}
    found = await client.assistants.search(metadata=mine)
    assert [a["name"] for a in found] == ["N2", "N1", "N0"]  # newest first
    assert await client.assistants.count(metadata=mine) == 3
    assert await client.assistants.count(metadata=mine, graph_id="echo") == 2
    assert [a["name"] for a in await client.assistants.search(metadata=mine, graph_id="echo")] == ["N2", "N0"]
    assert [a["name"] for a in await client.assistants.search(metadata=mine, limit=1, offset=1)] == ["N1"]
    assert await client.assistants.search(metadata={"owner": "nobody"}) == []
    for each in made:
        await client.assistants.delete(each["assistant_id"])


@pytest.mark.beyond_peer("always sorts by created_at")
async def test_search_sorted(client):
    owner = str(uuid.uuid4())
    made = [await client.assistants.create("echo", name=name, metadata={"owner": owner}) for name in ("b", "a", "c")]
    for order, expected in (("asc", ["a", "b", "c"]), ("desc", ["c", "b", "a"])):
        found = await client.assistants.search(metadata={"owner": owner}, sort_by="name", sort_order=order)
        assert [each["name"] for each in found] == expected
    for each in made:
        await client.assistants.delete(each["assistant_id"])


@pytest.mark.beyond_peer("compares nested objects as a whole")
async def test_metadata_is_contained(client, assistant):
    found = await client.assistants.search(metadata={"owner": "ada", "team": {"id": 1}})
    assert assistant["assistant_id"] in [each["assistant_id"] for each in found]
    assert await client.assistants.search(metadata={"owner": "ada", "team": {"id": 2}}) == []


async def test_search_by_name_and_select(client, assistant):
    found = await client.assistants.search(name="ada'S ECHO", select=["assistant_id", "name"])
    assert {"assistant_id": assistant["assistant_id"], "name": "Ada's echo"} in found
    assert await client.assistants.count(name="ada's") >= 1
    assert await client.assistants.search(name="no such name at all") == []


@pytest.mark.beyond_peer("tells a next page only when the last one is full")
async def test_search_names_the_next_page(client):
    owner = str(uuid.uuid4())
    made = [await client.assistants.create("echo", metadata={"owner": owner}) for _ in range(3)]
    first = await client.assistants.search(metadata={"owner": owner}, limit=2, response_format="object")
    assert len(first["assistants"]) == 2 and first["next"] == "2"
    for each in made:
        await client.assistants.delete(each["assistant_id"])


@pytest.mark.beyond_peer("tells a next page only when the last one is full")
async def test_the_last_page_has_no_next(client):
    owner = str(uuid.uuid4())
    made = [await client.assistants.create("echo", metadata={"owner": owner}) for _ in range(2)]
    last = await client.assistants.search(metadata={"owner": owner}, limit=2, response_format="object")
    assert len(last["assistants"]) == 2 and last["next"] is None
    for each in made:
        await client.assistants.delete(each["assistant_id"])


@pytest.mark.beyond_peer("answers 400, and sorts by anything")
async def test_search_with_wrong_values(client):
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.search(sort_by="colour")
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.search(limit=0)
    with pytest.raises(UnprocessableEntityError):
        await client.assistants.search(limit=1001)


async def test_delete(client, assistant):
    same = assistant["assistant_id"]
    assert await client.assistants.delete(same) is None
    with pytest.raises(NotFoundError):
        await client.assistants.get(same)
    with pytest.raises(NotFoundError):
        await client.assistants.delete(same)


@pytest.mark.beyond_peer("looks for the threads before they have an assistant")
async def test_delete_with_threads(client, assistant, thread):
    same = assistant["assistant_id"]
    await client.runs.wait(thread, same, input={"messages": ["hi"]})
    await client.assistants.delete(same, delete_threads=True)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


async def test_graph(client):
    drawn = await client.assistants.get_graph("nested")
    assert {node["id"] for node in drawn["nodes"]} == {"__start__", "before", "child", "__end__"}
    assert {node["id"] for node in drawn["nodes"] if node["type"] == "schema"} == {"__start__", "__end__"}
    assert {(edge["source"], edge["target"]) for edge in drawn["edges"]} == {
        ("__start__", "before"), ("before", "child"), ("child", "__end__"),
    }  # fmt: skip
    looped = await client.assistants.get_graph("loop")
    conditional = [edge for edge in looped["edges"] if edge.get("conditional")]
    assert {(edge["source"], edge["target"]) for edge in conditional} == {("step", "step"), ("step", "__end__")}


@pytest.mark.parametrize("depth", [True, 1])
async def test_graph_opened(client, depth):
    drawn = await client.assistants.get_graph("nested", xray=depth)
    assert {"child:choose", "child:question", "child:inner"} <= {node["id"] for node in drawn["nodes"]}
    assert "child" not in {node["id"] for node in drawn["nodes"]}


@pytest.mark.beyond_peer("reads schemas from TypeScript only")
async def test_schemas(client):
    found = await client.assistants.get_schemas("nested")
    assert found["graph_id"] == "nested"
    assert {"input_schema", "output_schema", "state_schema", "config_schema", "context_schema"} <= set(found)
    assert set(found["state_schema"]["properties"]) == {"messages", "ask"}
    assert set(found["input_schema"]["properties"]) == {"messages", "ask"}


@pytest.mark.beyond_peer("reads schemas from TypeScript only")
async def test_subgraphs(client):
    found = await client.assistants.get_subgraphs("nested")
    assert set(found) == {"child"}
    assert await client.assistants.get_subgraphs("nested", recurse=True) == found
    assert set(await client.assistants.get_subgraphs("nested", namespace="child")) == {"child"}
    assert await client.assistants.get_subgraphs("echo") == {}
    with pytest.raises(NotFoundError):
        await client.assistants.get_subgraphs("nested", namespace="nowhere")


@pytest.mark.parametrize("method", ["get_graph", "get_schemas", "get_subgraphs", "get_versions"])
async def test_unknown_everywhere(client, unknown, method):
    with pytest.raises(NotFoundError):
        await getattr(client.assistants, method)(unknown)
