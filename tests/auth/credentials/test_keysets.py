"""Key sets from a real server: rotation, outages, garbage, slow responses, and floods of unknown
keys."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from load import at_pace
from programs import wait_for
from tokens import Issuer, jwk_of, key_of


@pytest.fixture
def pair(secured, jwks):
    """A server, its issuer, and the server of the issuer's keys."""
    issuer = Issuer("hall", "ES256")
    keys = jwks(issuer)
    return secured(issuers=[issuer.config(keys.url)]), issuer, keys


class Since:
    """Counts the additional fetches that are allowed on a slow machine because their interval has
    passed."""

    def __init__(self):
        self.started = time.monotonic()

    def fetches(self, seconds: int) -> int:
        return int((time.monotonic() - self.started) // seconds)


FORCED, RETRY = 60, 5  # seconds between fetches for unknown keys, and after a failed fetch


def status(server, token: str) -> int:
    with server.client(token) as http:
        answer = http.post("/threads/count", json={})
    if answer.status_code == 503:
        assert int(answer.headers["retry-after"]) > 0
    return answer.status_code


def unknown(issuer: Issuer, kid: str, subject: str = "alice") -> str:
    """A token signed with an unpublished key."""
    return jwt.encode(issuer.claims(subject), key_of("ES256", "unpublished"), "ES256", headers={"kid": kid})


def test_keys_are_fetched_once(pair):
    server, issuer, keys = pair
    assert keys.count == 0
    for subject in range(20):
        assert status(server, issuer.token(f"user {subject}")) == 200
    assert keys.count == 1
    assert keys.requests[0].headers["accept"] == "application/json"
    assert "authorization" not in keys.requests[0].headers


def test_many_wait_for_one_fetch(secured, jwks):
    def attempt(pace):
        issuer = Issuer("hall", "ES256")
        keys = jwks(issuer)
        server = secured(issuers=[issuer.config(keys.url)])
        go = threading.Event()
        good = keys.document()

        def slow(peer, request):
            assert go.wait(60)
            peer.answer(200, good)

        keys.mode = slow
        with ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(status, server, issuer.token(f"user {n}")) for n in range(16)]
            wait_for(lambda: keys.count == 1, what="the fetch")
            pace()
            # Meanwhile the server handles other requests.
            assert server.ask("GET", "/ok") == {"ok": True}
            go.set()
            assert [each.result(60) for each in asked] == [200] * 16
        assert keys.count == 1

    at_pace(10, attempt)  # the timeout of a fetch


def test_a_new_key_is_found_at_once(pair):
    server, issuer, keys = pair
    old = issuer.token("alice")
    assert status(server, old) == 200
    keys.rotate("2", keep_old=True)
    assert status(server, issuer.token("alice")) == 200
    assert keys.count == 2
    assert status(server, issuer.token("bob")) == 200
    assert status(server, old) == 200
    assert keys.count == 2


def test_a_removed_key_is_not_accepted(pair):
    server, issuer, keys = pair
    assert status(server, issuer.token("alice")) == 200
    before = issuer.token("bob")
    keys.rotate("2")
    assert status(server, issuer.token("alice")) == 200
    assert status(server, before) == 401


def test_a_flood_of_unknown_keys_is_one_request(pair):
    server, issuer, keys = pair
    assert status(server, issuer.token("alice")) == 200
    since = Since()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: status(server, unknown(issuer, f"kid {n}")), range(200)))
    assert set(answers) == {401}
    assert 2 <= keys.count <= 2 + since.fetches(FORCED)
    # Tokens with a known key still work.
    assert status(server, issuer.token("bob")) == 200


@pytest.mark.parametrize("mode", ["down", "error", "garbage", "not keys", "huge"])
def test_fetched_key_sets_are_kept(pair, mode):
    """When fetches fail, tokens with a known key are still accepted; others get a 503."""
    server, issuer, keys = pair
    assert status(server, issuer.token("alice")) == 200
    keys.mode = mode
    since = Since()
    assert status(server, unknown(issuer, "new")) == 503
    assert keys.count >= 2
    asked = keys.count
    for n in range(20):
        assert status(server, issuer.token(f"user {n}")) == 200
        assert status(server, unknown(issuer, f"kid {n}")) == 503
    assert keys.count <= asked + 2 * since.fetches(FORCED)


@pytest.mark.parametrize("mode", ["down", "garbage"])
def test_without_keys_no_request_is_admitted(secured, jwks, mode):
    issuer = Issuer("hall", "ES256")
    keys = jwks(issuer)
    keys.mode = mode
    server = secured(issuers=[issuer.config(keys.url), Issuer("main")])
    since = Since()
    for n in range(20):
        assert status(server, issuer.token(f"user {n}")) == 503
    # libcurl may retry a broken connection once.
    assert keys.count <= 2 * (1 + since.fetches(RETRY))
    assert status(server, server.user("alice")) == 200
    keys.mode = "good"
    wait_for(lambda: status(server, issuer.token("alice")) == 200, what="the keys")


def test_answers_that_do_not_come_end(secured, jwks):
    """A fetch times out after ten seconds."""
    issuer = Issuer("hall", "ES256")
    keys = jwks(issuer)
    keys.mode = lambda peer, request: peer.wait_closed()
    server = secured(issuers=[issuer.config(keys.url)])
    assert status(server, issuer.token("alice")) == 503
    assert keys.count == 1


def test_redirects_are_not_followed(secured, scripted):
    issuer = Issuer("hall", "ES256")
    good = scripted(lambda peer, request: peer.answer(200, issuer.jwks()))
    other = scripted(lambda peer, request: peer.answer(302, "", {"Location": good.url}))
    server = secured(issuers=[issuer.config(other.url)])
    assert status(server, issuer.token("alice")) == 503
    assert not good.requests


def test_keys_that_are_not_for_this_are_passed_over(secured, jwks):
    """For encryption, of another kind, a secret, a private one: tokens with these keys are refused,
    others are not."""
    issuer = Issuer("hall", "ES256")
    keys = jwks(issuer)
    own = jwk_of(key_of("ES256", "enc"), "ES256", "enc")
    keys.kept = [
        {**own, "use": "enc"},
        {**jwk_of(key_of("RS256", "short"), "RS256", "rsa"), "n": "AQAB"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"},
        {**own, "kid": "private", "d": own["x"]},
        "no key",
        7,
    ]
    server = secured(issuers=[issuer.config(keys.url)])
    assert status(server, issuer.token("alice")) == 200
    for kid in ("enc", "private"):
        token = jwt.encode(issuer.claims("alice"), key_of("ES256", "enc"), "ES256", headers={"kid": kid})
        assert status(server, token) == 401


def test_a_token_without_a_key_id(pair):
    server, issuer, keys = pair
    assert status(server, jwt.encode(issuer.claims("alice"), issuer.key, "ES256")) == 200
    assert status(server, jwt.encode(issuer.claims("alice"), key_of("ES256", "unpublished"), "ES256")) == 401
