"""A handler receives the values of the operation: a request cannot carry two conflicting ones."""

import httpx
import pytest

AUTH = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str) -> dict:
    return {"identity": authorization.removeprefix("Bearer ")}


@auth.on.threads.create_run
async def create_run(ctx, value):
    return value["kwargs"]["input"]["messages"] != "forbidden"


@auth.on.threads.update
async def update(ctx, value):
    return value["thread_id"] == value["metadata"]["allowed"]


@auth.on.store.put
async def put(ctx, value):
    return value["value"]["team"] == "mine"
"""


@pytest.fixture(scope="module")
def ask(guarded_module):
    server = guarded_module("python", {"compartments": "shared"}, files={"auth.py": AUTH})
    headers = {"authorization": "Bearer ada", "content-type": "application/json"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=120) as client:
        yield lambda method, path, body: client.request(method, path, content=body)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        (
            "POST",
            "/runs/wait",
            '{"assistant_id": "echo", "input": {"messages": "forbidden"}, "input": {"messages": "hi"}}',
        ),
        ("POST", "/runs/wait", '{"assistant_id": "echo", "input": {"messages": "forbidden", "messages": "hi"}}'),
        (
            "POST",
            "/runs/batch",
            '[{"assistant_id": "echo", "input": {"messages": "forbidden"}, "input": {"messages": "hi"}}]',
        ),
        ("PUT", "/store/items", '{"namespace": ["n"], "key": "k", "value": {"team": "theirs", "team": "mine"}}'),
    ],
)
def test_names_that_occur_twice(ask, method, path, body):
    answer = ask(method, path, body)
    assert (answer.status_code, "occurs twice" in answer.text) == (422, True), answer.text


def test_handlers_still_decide(ask):
    run = '{"assistant_id": "echo", "input": {"messages": "%s"}}'
    assert ask("POST", "/runs/wait", run % "hi").status_code == 200
    assert ask("POST", "/runs/wait", run % "forbidden").status_code == 403


def test_a_body_does_not_name_another_thread(ask):
    """The path determines the thread, whatever the body contains."""
    one, other = (ask("POST", "/threads", "{}").json()["thread_id"] for _ in range(2))
    body = '{"thread_id": "%s", "metadata": {"allowed": "%s"}}' % (one, one)
    assert ask("PATCH", f"/threads/{other}", body).status_code == 403
    assert ask("PATCH", f"/threads/{one}", body).json()["metadata"]["allowed"] == one
