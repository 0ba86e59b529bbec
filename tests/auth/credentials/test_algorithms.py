"""Tokens of every algorithm, from two libraries, are accepted; modified tokens are refused."""

from __future__ import annotations

import json

import pytest
from tokens import ALGORITHMS, SYMMETRIC, Issuer

MORE = ("PS384", "PS512")


def owner(server, token: str) -> str:
    return server.ask("POST", "/threads", token=token, json={})["metadata"]["owner"]


def refused(server, token: str) -> None:
    answer = server.ask("POST", "/threads/count", 401, token=token, json={})
    assert set(answer) == {"detail"}


class Publisher:
    """A stand-in for an issuer in JwksServer, with keys from outside."""

    alias = "jose"

    def __init__(self, keys: list[dict]):
        self.keys = keys

    def jwks(self) -> dict:
        return {"keys": self.keys}


@pytest.fixture(scope="module")
def hall(secured_module):
    """A server with an issuer for each algorithm, and one server for all their keys."""
    from jwks import JwksServer

    issuers = {algorithm: Issuer(algorithm.lower(), algorithm) for algorithm in ALGORITHMS}
    public = [issuer for issuer in issuers.values() if issuer.algorithm not in SYMMETRIC]
    with JwksServer(*public) as keys:
        entries, env = [], {}
        for issuer in issuers.values():
            entries.append(issuer.config(None if issuer.algorithm in SYMMETRIC else keys.url))
            env |= issuer.environment()
        yield secured_module(issuers=entries, env=env), issuers


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_of_pyjwt_are_accepted(hall, algorithm):
    server, issuers = hall
    assert owner(server, issuers[algorithm].token("alice")) == "alice"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_modified_tokens_are_refused(hall, algorithm):
    server, issuers = hall
    good, other = (issuers[algorithm].token(subject).split(".") for subject in ("alice", "mallory"))
    refused(server, f"{good[0]}.{other[1]}.{good[2]}")
    refused(server, f"{good[0]}.{good[1]}.{other[2]}")
    refused(server, f"{good[0]}.{good[1]}.{good[2][:-8]}")
    refused(server, f"{good[0]}.{good[1]}.")
    refused(server, f"{good[0]}.{good[1]}.{good[2]}=")
    assert owner(server, ".".join(good)) == "alice"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_another_issuers_key_is_not_its_own(hall, algorithm):
    """Every other issuer signs a token that names this one as its issuer."""
    server, issuers = hall
    for other in issuers.values():
        if other.algorithm != algorithm:
            refused(server, other.token("alice", iss=issuers[algorithm].url))


def test_tokens_of_jose_are_accepted(node, secured, jwks):
    algorithms = (*ALGORITHMS, *MORE)
    claims = {"iss": "https://%ALG%.test", "aud": "heddle", "sub": "user of %ALG%"}
    made = json.loads(node("credentials/mint.mjs", json.dumps({"algorithms": algorithms, "claims": claims})))
    assert len(made["keys"]) == len(algorithms) - len(SYMMETRIC)
    url = jwks(Publisher(made["keys"])).url
    entries = [
        {
            "alias": algorithm.lower(), "issuer": f"https://{algorithm.lower()}.test", "audience": "heddle",
            "algorithms": [algorithm],
            **({"secret": {"env": f"SECRET_{algorithm}"}} if algorithm in SYMMETRIC else {"jwks_url": url}),
        }
        for algorithm in algorithms
    ]  # fmt: skip
    server = secured(issuers=entries, env={f"SECRET_{name}": text for name, text in made["secrets"].items()})
    for algorithm in algorithms:
        assert owner(server, made["tokens"][algorithm]) == f"user of {algorithm.lower()}", algorithm
        refused(server, made["touched"][algorithm])
