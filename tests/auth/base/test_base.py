"""The tools of these tests are correct: other libraries agree with them."""

from __future__ import annotations

import jwt
import pytest
from tokens import ALGORITHMS, SYMMETRIC, Issuer, bad_tokens


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_verify_with_the_published_key(algorithm, jwks):
    issuer = Issuer("main", algorithm)
    token = issuer.token("alice")
    if algorithm in SYMMETRIC:
        key = issuer.key
    else:
        server = jwks(issuer)
        key = jwt.PyJWKClient(server.url, cache_jwk_set=False).get_signing_key_from_jwt(token).key
        assert server.count == 1
    claims = jwt.decode(token, key, [algorithm], audience=issuer.audience, issuer=issuer.url)
    assert claims["sub"] == "alice"


@pytest.mark.parametrize("name", sorted(bad_tokens(Issuer("main"), "alice")))
def test_bad_tokens_are_bad(name, issuer):
    with pytest.raises(jwt.InvalidTokenError):
        jwt.decode(
            bad_tokens(issuer, "alice")[name], issuer.key, ["HS256"], audience=issuer.audience, issuer=issuer.url,
            options={"require": ["exp", "sub"]},
        )  # fmt: skip


def test_a_server_of_keys_rotates_and_fails(jwks):
    issuer = Issuer("main", "ES256")
    server = jwks(issuer)
    client = jwt.PyJWKClient(server.url, cache_jwk_set=False)
    old = issuer.token("alice")
    server.rotate("2")
    assert client.get_signing_key_from_jwt(issuer.token("alice")).key_id == "main-2"
    with pytest.raises(jwt.PyJWKClientError):
        client.get_signing_key_from_jwt(old)
    for mode in ("down", "error", "garbage", "not keys", "huge"):
        server.mode = mode
        with pytest.raises((jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError, OSError)):
            client.get_signing_key_from_jwt(issuer.token("alice"))
