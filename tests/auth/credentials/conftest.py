from __future__ import annotations

import pytest
from secured import Secured


@pytest.fixture
def idle():
    """idle(…): a Secured that is not started, with its folder, environment and tool()."""
    made = []

    def create(**options) -> Secured:
        made.append(Secured(**options))
        return made[-1]

    yield create
    for each in made:
        each.remove()
