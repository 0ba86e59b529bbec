"""Shared by the suites of the runtimes: served projects and scripted models."""

from __future__ import annotations

import pytest
from programs import Heddle, Mock, collect
from project import Project


@pytest.fixture
def project():
    """project(folder=… or config=…, files=…): a running Project."""
    yield from collect(Project)


@pytest.fixture(scope="module")
def project_module():
    """The same, for as long as the tests of a file."""
    yield from collect(Project)


@pytest.fixture
def heddle():
    """heddle(graphs=…): a server with native graphs only."""
    yield from collect(Heddle)


@pytest.fixture
def mock():
    """mock(script): a running `heddle mock-model`."""
    yield from collect(Mock)


@pytest.fixture(scope="module")
def mock_module():
    yield from collect(Mock)
