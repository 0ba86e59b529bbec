"""Attacks: each gets a 401 without details, and the server keeps running."""

from __future__ import annotations

import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from jwks import JwksServer
from tokens import HOUR, Issuer, anon_key, bad_tokens, encode64, hmac_sha256, jwk_of, key_of, raw_token

NOW = int(time.time())


@pytest.fixture(scope="module")
def hall(secured_module):
    """The issuer `main` with a secret, `rsa` and `ec` with public keys."""
    rsa, ec = Issuer("rsa", "RS256"), Issuer("ec", "ES256")
    with JwksServer(rsa, ec) as keys:
        main = Issuer("main")
        server = secured_module(issuers=[main, rsa.config(keys.url), ec.config(keys.url)])
        yield server, {"main": main, "rsa": rsa, "ec": ec}


def refused(server, token: str) -> None:
    with server.client(token) as http:
        answer = http.post("/threads/count", json={})
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json() == {"detail": "the credentials are not valid"}


def twice(text: str) -> str:
    """Returns the claims with one of them twice."""
    return text[:-1] + ',"sub":"mallory"}'


def signed_text(issuer: Issuer, header: str, payload: str) -> str:
    """A token with exactly this text, signed with the issuer's secret."""
    parts = f"{encode64(header.encode())}.{encode64(payload.encode())}"
    return f"{parts}.{encode64(hmac_sha256(issuer.key.encode())(parts.encode()))}"


def headers_of(main: Issuer) -> dict[str, str]:
    claims = json.dumps(main.claims("alice"))

    def with_header(**header) -> str:
        return signed_text(main, json.dumps({"alg": "HS256", "typ": "JWT"} | header), claims)

    return {
        "critical": with_header(crit=["exp"]),
        "critical and known": with_header(crit=["b64"], b64=True),
        "compressed": with_header(zip="DEF"),
        "nested": with_header(cty="JWT"),
        "encrypted": with_header(enc="A128GCM"),
        "another type": with_header(typ="logout+jwt"),
        "a key id that is no text": with_header(kid=7),
        "an algorithm that is no text": with_header(alg=["HS256"]),
        "lower case": with_header(alg="hs256"),
        "twice in the header": signed_text(main, '{"alg":"HS256","alg":"HS256"}', claims),
        "twice in the claims": signed_text(main, '{"alg":"HS256"}', twice(claims)),
        "twice, by an escape": signed_text(main, '{"alg":"HS256"}', claims[:-1] + ',"s\\u0075b":"mallory"}'),
        "a comment": signed_text(main, '{"alg":"HS256"}', claims[:-1] + "/**/}"),
        "claims that are a list": signed_text(main, '{"alg":"HS256"}', f"[{claims}]"),
        "claims that are no JSON": signed_text(main, '{"alg":"HS256"}', claims[:-1]),
        "four parts": signed_text(main, '{"alg":"HS256"}', claims) + ".AAAA",
        "five parts": "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.AAAA.AAAA.AAAA.AAAA",
    }  # fmt: skip


def claims_of(main: Issuer) -> dict[str, str]:
    return {
        "no expiry": main.token("alice", exp=None),
        "an expiry of text": raw_token(
            {"alg": "HS256"}, main.claims("alice", exp=str(NOW + HOUR)), hmac_sha256(main.key.encode())
        ),
        # Valid only long after the tests, which may be slow, and not expired before.
        "not yet valid": main.token("alice", nbf=NOW + 24 * HOUR, exp=NOW + 48 * HOUR),
        "issued in the future": main.token("alice", iat=NOW + 24 * HOUR, exp=NOW + 48 * HOUR),
        "for nobody": main.token("alice", aud=None),
        "for others": main.token("alice", aud=["a", "b"]),
        "no issuer": main.token("alice", iss=None),
        "an empty subject": main.token(""),
        "a long subject": main.token("a" * 256),
        "a subject with a NUL": main.token("alice\0"),
        "another role": main.token("alice", role="service_role"),
        "no role": main.token("alice", role=None),
        "anon key": anon_key(main),
        "anon key of this issuer": main.token(None, role="anon"),
        "service_role key": jwt.encode(
            {"iss": "supabase", "ref": "project", "role": "service_role", "iat": NOW - 10, "exp": NOW + HOUR}, main.key, "HS256"
        ),
        "oversized": main.token("alice", padding="a" * 16384),
    }  # fmt: skip


def confused(issuers: dict[str, Issuer]) -> dict[str, str]:
    """The public key used as a secret, in its usual forms; and keys inside the token."""
    main, rsa, ec = issuers["main"], issuers["rsa"], issuers["ec"]
    public = rsa.key.public_key()
    forms = {
        "PEM": public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        "PKCS1": public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
        "DER": public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
        "JWK": json.dumps(jwk_of(rsa.key, "RS256", rsa.kid)).encode(),
        "nothing": b"",
    }
    found = {
        f"HS256 with the public key as {form}": raw_token(
            {"alg": "HS256", "kid": rsa.kid}, rsa.claims("alice"), hmac_sha256(key)
        )
        for form, key in forms.items()
    }
    evil = key_of("RS256", "evil")
    brought = {"jwk": jwk_of(evil, "RS256", "evil"), "jku": "https://evil.test/keys", "x5u": "https://evil.test/keys"}
    for name, value in brought.items():
        found[f"brings its {name}"] = jwt.encode(
            rsa.claims("alice"), evil, "RS256", headers={"kid": "evil", name: value}
        )
        found[f"brings its {name}, by the good id"] = jwt.encode(
            rsa.claims("alice"), evil, "RS256", headers={"kid": rsa.kid, name: value}
        )
    return found | {
        "PS256 of an RS256 key": jwt.encode(rsa.claims("alice"), rsa.key, "PS256", headers={"kid": rsa.kid}),
        "RS384 of an RS256 key": jwt.encode(rsa.claims("alice"), rsa.key, "RS384", headers={"kid": rsa.kid}),
        "HS512 with the secret": jwt.encode(main.claims("alice"), main.key, "HS512"),
        "RS256 for the issuer with a secret": jwt.encode(main.claims("alice"), rsa.key, "RS256", headers={"kid": rsa.kid}),
        "the other's key": jwt.encode(ec.claims("alice"), rsa.key, "RS256", headers={"kid": rsa.kid}),
        "the other's key id": jwt.encode(rsa.claims("alice"), rsa.key, "RS256", headers={"kid": ec.kid}),
        "ES256 in DER": raw_token({"alg": "ES256", "kid": ec.kid}, ec.claims("alice"), lambda data: der(ec, data)),
        "ES256 of zeros": raw_token({"alg": "ES256", "kid": ec.kid}, ec.claims("alice"), lambda data: b"\0" * 64),
        "none with a signature": raw_token({"alg": "none"}, main.claims("alice"), hmac_sha256(main.key.encode())),
        "NONE": raw_token({"alg": "NONE"}, main.claims("alice"), lambda data: b"x"),
    }  # fmt: skip


def der(issuer: Issuer, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    return issuer.key.sign(data, ec.ECDSA(hashes.SHA256()))


def everything() -> dict[str, str]:
    issuers = {"main": Issuer("main"), "rsa": Issuer("rsa", "RS256"), "ec": Issuer("ec", "ES256")}
    found = {}
    for name, issuer in issuers.items():
        found |= {f"{kind} ({name})": token for kind, token in bad_tokens(issuer, "alice").items()}
    return found | headers_of(issuers["main"]) | claims_of(issuers["main"]) | confused(issuers)


ALL = everything()


@pytest.mark.parametrize("name", sorted(ALL))
def test_it_is_refused(hall, name):
    refused(hall[0], ALL[name])


def test_the_good_ones_are_good(hall):
    """The control group: without it, the refusals would prove nothing."""
    server, issuers = hall
    for issuer in issuers.values():
        made = server.ask("POST", "/threads", token=issuer.token("alice"), json={})
        assert made["metadata"]["owner"] == "alice"


def test_malformed_credentials(hall):
    server, issuers = hall
    good = issuers["main"].token("alice")
    for header in ("", "Bearer", "Basic YWxpY2U6eA==", good, f"Token {good}", f"Bearer {good} {good}"):
        with server.client(headers={"Authorization": header}) as http:
            assert http.post("/threads/count", json={}).status_code == 401, header
    for key in ("hdk_", good, "lsv2_pt_0123456789abcdef0123456789abcdef"):
        with server.client(headers={"x-api-key": key}) as http:
            assert http.post("/threads/count", json={}).status_code == 401, key
    with server.client(good, headers={"x-api-key": "lsv2_pt_0123456789abcdef"}) as http:
        assert http.post("/threads/count", json={}).status_code == 200


def test_the_log_has_the_reason_and_no_credential(secured):
    server = secured()
    token = Issuer("main").token("alice", aud="somebody")
    refused(server, token)
    server.stop()
    log = server.log.read_text()
    assert "it is for another audience" in log
    for part in token.split("."):
        assert part not in log
