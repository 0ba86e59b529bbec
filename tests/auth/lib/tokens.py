"""Tokens as issuers make them, and as attackers do.

issuer = Issuer("main")                    # HS256 with a secret
issuer.token("alice", role="admin")        # a valid one; more claims by name, None removes one
signed = Issuer("hall", "ES256")           # with a key pair: signed.jwks() is its key set
bad_tokens(issuer, "alice")                # {"expired": …, "wrong issuer": …, …}: all are refused
"""

from __future__ import annotations

import base64
import json
import time
from functools import cache

import jwt
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

SYMMETRIC = ("HS256", "HS384", "HS512")
ALGORITHMS = (*SYMMETRIC, "RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
HOUR = 3600


def encode64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_key(algorithm: str):
    """Creates a private key for an algorithm."""
    if algorithm in SYMMETRIC:
        return f"a secret of the tests that is long enough for {algorithm}, whatever it hashes with"
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm.startswith("ES"):
        return ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[algorithm])
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def key_of(algorithm: str, name: str):
    """Returns the key of that name; cached for the whole run, because RSA keys are slow to create."""
    if algorithm in SYMMETRIC:
        return f"{make_key(algorithm)} ({name})"
    return make_key(algorithm)


def jwk_of(key, algorithm: str, kid: str) -> dict:
    """Returns the public key in the form of key sets."""
    found = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    return {name: value for name, value in found.items() if name != "key_ops"} | {
        "kid": kid, "alg": algorithm, "use": "sig",
    }  # fmt: skip


class Issuer:
    """Issues tokens. `kid` None: tokens signed with the secret name no key."""

    def __init__(self, alias: str, algorithm: str = "HS256", audience: str = "authenticated", url: str | None = None):
        self.alias, self.algorithm, self.audience = alias, algorithm, audience
        self.url = url or f"https://{alias}.test/auth/v1"
        self.kid = None if algorithm in SYMMETRIC else f"{alias}-1"
        self.key = key_of(algorithm, self.kid or alias)

    def rotate(self, kid: str) -> None:
        """Signs tokens with a new key from now on; jwks() has only that one."""
        self.kid, self.key = kid, key_of(self.algorithm, kid)

    def jwks(self, *others: dict) -> dict:
        return {"keys": [jwk_of(self.key, self.algorithm, self.kid), *others]}

    def claims(self, subject: str | None, **more) -> dict:
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": self.audience, "sub": subject, "role": "authenticated",
            "iat": now - 10, "exp": now + HOUR,
        } | more  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, subject: str | None, headers: dict | None = None, **more) -> str:
        named = {"kid": self.kid} if self.kid else {}
        return jwt.encode(self.claims(subject, **more), self.key, self.algorithm, headers=named | (headers or {}))

    def config(self, jwks_url: str | None = None) -> dict:
        """Returns its entry in the configuration; a secret must be in environment()."""
        source = {"jwks_url": jwks_url} if jwks_url else {"secret": {"env": self.variable}}
        return {
            "alias": self.alias, "issuer": self.url, "audience": self.audience, "algorithms": [self.algorithm],
            "require": {"role": "authenticated"}, "organisations": "app_metadata.organisations",
            "admin": {"claim": "app_metadata.role", "value": "admin"}, **source,
        }  # fmt: skip

    @property
    def variable(self) -> str:
        return f"TEST_ISSUER_{self.alias.upper().replace('-', '_')}"

    def environment(self) -> dict[str, str]:
        return {self.variable: self.key} if self.algorithm in SYMMETRIC else {}

    def admin(self, subject: str) -> str:
        return self.token(subject, app_metadata={"role": "admin"})

    def member(self, subject: str, *organisations: str) -> str:
        return self.token(subject, app_metadata={"organisations": list(organisations)})


def raw_token(header: dict, claims: dict, sign=lambda signed: b"") -> str:
    """Builds an arbitrary token; sign(bytes) returns the signature."""
    signed = ".".join(encode64(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    return f"{signed}.{encode64(sign(signed.encode()))}"


def hmac_sha256(key: bytes):
    def sign(data: bytes) -> bytes:
        made = hmac.HMAC(key, hashes.SHA256())
        made.update(data)
        return made.finalize()

    return sign


def anon_key(issuer: Issuer) -> str:
    """Supabase's public key of a project: a JWT that is signed with the secret of the users'
    tokens."""
    now = int(time.time())
    claims = {"iss": "supabase", "ref": "project", "role": "anon", "iat": now - 10, "exp": now + 10 * 365 * 24 * HOUR}
    return jwt.encode(claims, issuer.key, issuer.algorithm)


def bad_tokens(issuer: Issuer, subject: str) -> dict[str, str]:
    """Returns tokens that a server must refuse; apart from one defect, each is the subject's token."""
    now = int(time.time())
    good = issuer.token(subject)
    head, payload, signature = good.split(".")
    stranger = issuer.token("somebody else").split(".")
    return {
        "expired": issuer.token(subject, iat=now - 2 * HOUR, exp=now - HOUR),
        "wrong issuer": issuer.token(subject, iss="https://evil.test/auth/v1"),
        "wrong audience": issuer.token(subject, aud="somebody"),
        "forged signature": f"{head}.{payload}.{signature[:-8]}{'A' * 8}",
        "swapped payload": f"{stranger[0]}.{payload}.{stranger[2]}",
        "no algorithm": raw_token({"alg": "none", "typ": "JWT"}, issuer.claims(subject)),
        "anon key": anon_key(issuer),
        "no subject": issuer.token(None),
    }
