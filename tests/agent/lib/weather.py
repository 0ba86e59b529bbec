"""A tool of the agents in these tests: an HTTP server with weather reports."""

from __future__ import annotations

import threading
from urllib.parse import parse_qs, urlsplit

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Weather:
    """Responds to `GET /weather?city=…`; with `crowd` only once that many requests wait."""

    def __init__(self, scripted, crowd: int = 1):
        self.barrier = threading.Barrier(crowd)
        self.server = scripted(self.handle)

    def handle(self, peer, request) -> None:
        city = parse_qs(urlsplit(request.path).query)["city"][0]
        self.barrier.wait(60)
        peer.answer(200, f"sunny in {city}")

    @property
    def cities(self) -> list[str]:
        return sorted(parse_qs(urlsplit(request.path).query)["city"][0] for request in self.server.requests)

    @property
    def tool(self) -> dict:
        """The entry for `http_tools` of a run's configurable."""
        return {
            "name": "weather", "description": "The weather of a city.", "parameters": SCHEMA,
            "url": self.server.url + "/weather", "query": ["city"],
        }  # fmt: skip
