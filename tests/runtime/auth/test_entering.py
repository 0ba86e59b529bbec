"""Access to the server: `authenticate`."""

import pytest


def test_the_code_authenticates_users(shared, ada):
    thread = ada("POST", "/threads", json={"metadata": {"a": 1}})
    assert thread["metadata"] == {"a": 1, "owner": "ada"}
    assert ada("GET", f"/threads/{thread['thread_id']}")["metadata"]["owner"] == "ada"


def test_refusals_pass_with_status_text_and_headers(shared):
    answer = shared.as_user(None).client.get("/threads/x")
    assert (answer.status_code, answer.json()) == (401, {"detail": "who are you?"})
    assert answer.headers["www-authenticate"] == 'Custom realm="tests"'
    answer = shared.as_user("t-nobody").client.post("/threads/search", json={})
    assert (answer.status_code, answer.json()) == (401, {"detail": "nobody has this token"})


@pytest.mark.parametrize("token", ["broken", "nameless"])
def test_failing_code_rejects_requests_without_details(shared, token):
    answer = shared.as_user(token).client.post("/threads", json={})
    assert answer.status_code == 500
    assert "nobody may read this" not in answer.text


def test_some_paths_need_no_user(shared):
    anybody = shared.as_user(None)
    for path in ("/ok", "/info", "/openapi.json"):
        anybody("GET", path)


def test_the_studio_needs_credentials(shared):
    answer = shared.as_user(None).client.post("/threads", json={}, headers={"x-auth-scheme": "langsmith"})
    assert answer.status_code == 401
