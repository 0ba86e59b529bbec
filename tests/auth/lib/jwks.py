"""A server of key sets that behaves as real ones do: rotates, is slow or down, sends garbage.

    with JwksServer(issuer) as server: … server.url … server.count

`mode` is "good", "down" (resets connections), "error" (500), "garbage" (not JSON), "not keys" (JSON
that is not a key set), "huge" (exceeds any limit), or a function(peer, request).
"""

from __future__ import annotations

from scripted import Peer, Request, Scripted
from tokens import Issuer

HUGE = b'{"keys": [' + b" " * (16 << 20) + b"]}"


class JwksServer(Scripted):
    def __init__(self, *issuers: Issuer, max_age: int | None = None):
        super().__init__(self.handle)
        self.issuers = issuers
        self.mode = "good"
        self.max_age = max_age
        self.kept: list[dict] = []  # keys published in addition to the issuers' keys
        self.base = self.url
        self.url += "/.well-known/jwks.json"

    @property
    def count(self) -> int:
        """Returns the number of requests."""
        return len(self.requests)

    def document(self) -> dict:
        keys = [key for issuer in self.issuers for key in issuer.jwks()["keys"]]
        return {"keys": keys + self.kept}

    def rotate(self, kid: str, keep_old: bool = False) -> None:
        """Every issuer signs with a new key."""
        if keep_old:
            self.kept += [key for issuer in self.issuers for key in issuer.jwks()["keys"]]
        for issuer in self.issuers:
            issuer.rotate(f"{issuer.alias}-{kid}")

    def handle(self, peer: Peer, request: Request) -> None:
        headers = {} if self.max_age is None else {"Cache-Control": f"max-age={self.max_age}"}
        if callable(self.mode):
            self.mode(peer, request)
        elif self.mode == "good":
            peer.answer(200, self.document(), headers)
        elif self.mode == "down":
            peer.reset()
        elif self.mode == "error":
            peer.answer(500, {"detail": "Internal Server Error"})
        elif self.mode == "garbage":
            peer.answer(200, b"<html>\xff\x00{{{", headers, "application/json")
        elif self.mode == "not keys":
            peer.answer(200, {"keys": {"kid": 7}}, headers)
        elif self.mode == "huge":
            peer.answer(200, HUGE, headers, "application/json")
        else:
            raise ValueError(self.mode)
