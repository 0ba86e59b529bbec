"""A project with custom authentication, in either language."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import httpx
import pytest
from programs import START_SECONDS, collect, wait_for
from project import Project

HERE = Path(__file__).parent / "projects"
FILES = {"python": "auth.py", "js": "auth.mts"}
USERS = {
    "t-ada": {"identity": "ada", "permissions": ["threads:delete"], "team": "weavers", "api_key": "hush-ada"},
    "t-bob": {"identity": "bob", "permissions": [], "team": "spinners"},
    "t-eve": {"identity": "eve", "permissions": ["threads:delete", "bad filters"]},
}


class Guarded(Project):
    """A Project with auth.path."""

    def __init__(self, language: str, auth: dict | None = None, files=None, graphs=None, config=None, options=None):
        file = FILES[language]
        super().__init__(
            config={
                "graphs": {"echo": "./echo.json", "slow": "./slow.json", **(graphs or {})},
                "auth": {"path": f"./{file}:auth", **(auth or {})},
                "dependencies": ["."],
                **(config or {}),
            },
            files={name: (HERE / name).read_text() for name in (file, "echo.json", "slow.json")} | (files or {}),
            options=options,
        )
        (self.project / "users.json").write_text(json.dumps(USERS))
        (self.project / "asked.log").touch()

    def start(self) -> Guarded:
        """Until a worker has loaded the code, requests are rejected (503) without a long wait."""
        super().start()
        wait_for(lambda: "is ready" in self.log.read_text(), START_SECONDS, "a worker")
        return self

    def as_user(self, token: str | None, **options) -> Asking:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        headers |= options.pop("headers", {})
        return Asking(httpx.Client(base_url=self.url, headers=headers, timeout=120, **options))

    def asked(self) -> list[str]:
        return (self.project / "asked.log").read_text().splitlines()

    def forget(self, token: str) -> None:
        users = {name: user for name, user in USERS.items() if name != token}
        (self.project / "users.json").write_text(json.dumps(users))


class Asking:
    """A user of the server."""

    def __init__(self, client: httpx.Client):
        self.client = client

    def __call__(self, method: str, path: str, status: int = 200, **options):
        answer = self.client.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content.strip() else None

    def thread(self, **body) -> str:
        return self("POST", "/threads", json=body)["thread_id"]


@pytest.fixture(scope="module", params=list(FILES))
def language(request):
    return request.param


@pytest.fixture(scope="module")
def guarded_module():
    yield from collect(Guarded)


@pytest.fixture
def guarded():
    """guarded(language, auth={…}): a running Guarded."""
    yield from collect(Guarded)


@pytest.fixture(scope="module")
def shared(guarded_module, language):
    """One compartment for all users: only the handlers decide, as on LangGraph's own server."""
    return guarded_module(language, {"compartments": "shared"})


@pytest.fixture
def ada(shared):
    with contextlib.closing(shared.as_user("t-ada").client) as client:
        yield Asking(client)


@pytest.fixture
def bob(shared):
    with contextlib.closing(shared.as_user("t-bob").client) as client:
        yield Asking(client)


@pytest.fixture
def eve(shared):
    with contextlib.closing(shared.as_user("t-eve").client) as client:
        yield Asking(client)
