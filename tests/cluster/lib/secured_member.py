"""Servers of a cluster with users."""

from __future__ import annotations

import httpx
from cluster import Member
from secured import PRINCIPAL_KEY
from tokens import Issuer


class SecuredMember(Member):
    """A server with users of one issuer, and API keys."""

    issuer = Issuer("main")

    def __init__(self, cluster, name, **options):
        auth = {
            "key": {"id": "2026", "env": "TEST_PRINCIPAL_KEY"},
            "issuers": [self.issuer.config()],
            "api_keys": True,
        }
        env = {"TEST_PRINCIPAL_KEY": PRINCIPAL_KEY, **self.issuer.environment()}
        config = {"auth": auth, "outgoing": {"private": "allow"}, **(options.pop("config", None) or {})}
        super().__init__(cluster, name, config=config, env=env, **options)

    def as_user(self, subject: str) -> httpx.Client:
        token = self.issuer.token(subject)
        return httpx.Client(base_url=self.url, timeout=60, headers={"Authorization": f"Bearer {token}"})
