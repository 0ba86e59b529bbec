"""The settings of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Annotated

from . import prompts


@dataclass(kw_only=True)
class Context:
    """Members that a run does not set come from the environment."""

    system_prompt: str = field(default=prompts.SYSTEM_PROMPT, metadata={"description": "told first"})
    model: Annotated[str, {"__template_metadata__": {"kind": "llm"}}] = field(
        default="anthropic/none", metadata={"description": "provider/model"}
    )
    most_results: int = field(default=3, metadata={"description": "of a search"})

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) == each.default:
                setattr(self, each.name, os.environ.get(each.name.upper(), each.default))
