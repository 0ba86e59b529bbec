"""Fixtures of the suites with users: servers with authentication, key sets, Node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jwks import JwksServer
from programs import Mock, clean_environment, collect
from scripted import Scripted
from secured import STORES, Secured
from tokens import Issuer

HERE = Path(__file__).resolve().parent


@pytest.fixture
def secured():
    """secured(store=…, issuers=…, auth=…, config=…, graphs=…): a running Secured."""
    yield from collect(Secured)


@pytest.fixture(scope="module")
def secured_module():
    """The same, shared by the tests of a file."""
    yield from collect(Secured)


@pytest.fixture(params=STORES)
def store(request) -> str:
    """Each database in turn."""
    return request.param


@pytest.fixture
def mock():
    """mock(script): a running `heddle mock-model`."""
    yield from collect(Mock)


@pytest.fixture
def issuer() -> Issuer:
    """An issuer with a secret, as every Secured has it."""
    return Issuer("main")


def serve(make):
    made = []

    def create(*arguments, **options) -> Scripted:
        server = make(*arguments, **options)
        made.append(server)
        return server.__enter__()

    yield create
    for server in made:
        server.stop()
    for server in made:
        assert not server.errors, server.errors


@pytest.fixture
def jwks():
    """jwks(issuer, …): a JwksServer for the duration of the test."""
    yield from serve(JwksServer)


@pytest.fixture
def scripted():
    """scripted(handler): a Scripted server for the duration of the test."""
    yield from serve(Scripted)


@pytest.fixture(scope="session")
def node():
    """node("part/file.mjs", *arguments): runs it and returns its output. Fails if it fails."""
    folder = Path(os.environ["HEDDLE_AUTH_NODE"])
    # Node resolves modules from a file's folder, so the files go beside the modules.
    for source in HERE.rglob("*.mjs"):
        target = folder / source.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)

    def run(script: str, *arguments: str, env: dict | None = None, input: str | None = None) -> str:
        done = subprocess.run(
            ["node", str(folder / script), *arguments],
            env=clean_environment() | (env or {}), cwd=folder, text=True, capture_output=True, input=input, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
