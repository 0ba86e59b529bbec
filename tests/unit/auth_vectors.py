#!/usr/bin/env python3
"""Makes auth_vectors.h: tokens by PyJWT, and principals by Python's own hmac. Needs PyJWT, cryptography.

python3 tests/unit/auth_vectors.py > tests/unit/auth_vectors.h
"""

import base64
import hashlib
import hmac
import json
import struct

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

SECRET = "0123456789abcdef0123456789abcdef-a shared secret"
CLAIMS = {"iss": "https://issuer.test", "sub": "alice", "aud": "heddle", "iat": 1700000000, "exp": 4102444800}
KEY = bytes(range(32))


def principal(label: str, key: bytes | None, alias: str, subject: str) -> str:
    parts = [text.encode() for text in (alias, subject)]
    message = label.encode() + b"\0" + b"".join(struct.pack(">I", len(part)) + part for part in parts)
    digest = hmac.new(key, message, hashlib.sha256).digest() if key else hashlib.sha256(message).digest()
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def text(name: str, value: str) -> None:
    quoted = [json.dumps(value[at : at + 80]) for at in range(0, len(value), 80)]
    print(f"static const char {name}[] =\n    " + "\n    ".join(quoted) + ";\n")


def main() -> None:
    long = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    p256, p384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
    edwards = ed25519.Ed25519PrivateKey.generate()
    keys = {"RS": long, "PS": long, "ES256": p256, "ES384": p384, "EdDSA": edwards}
    named = {"rsa": (long, "RS256"), "p256": (p256, "ES256"), "p384": (p384, "ES384"), "ed": (edwards, "EdDSA")}
    named["short"] = (short, "RS256")
    jwks = []
    for kid, (key, algorithm) in named.items():
        jwk = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
        jwks.append({name: value for name, value in jwk.items() if name != "key_ops"} | {"kid": kid})

    print("/* Made by auth_vectors.py: what others sign must be good here. */")
    print("#ifndef HD_TESTS_UNIT_AUTH_VECTORS_H\n#define HD_TESTS_UNIT_AUTH_VECTORS_H\n\n#include <stdbool.h>\n")
    text("vector_secret", SECRET)
    text("vector_jwks", json.dumps({"keys": jwks}))
    print("static const struct {\n    const char *alg;\n    const char *token;\n} vector_tokens[] = {")
    for algorithm in (
        "HS256",
        "HS384",
        "HS512",
        "RS256",
        "RS384",
        "RS512",
        "PS256",
        "PS384",
        "PS512",
        "ES256",
        "ES384",
        "EdDSA",
    ):
        key = SECRET if algorithm.startswith("HS") else keys.get(algorithm) or keys[algorithm[:2]]
        kid = {"H": None, "R": "rsa", "P": "rsa"}.get(
            algorithm[0], {"ES256": "p256", "ES384": "p384", "EdDSA": "ed"}.get(algorithm)
        )
        token = jwt.encode(CLAIMS, key, algorithm, headers={"kid": kid} if kid else None)
        quoted = [json.dumps(token[at : at + 80]) for at in range(0, len(token), 80)]
        print(f'    {{"{algorithm}",\n     ' + "\n     ".join(quoted) + "},")
    print("};\n")
    text("vector_short_token", jwt.encode(CLAIMS, short, "RS256", headers={"kid": "short"}))
    print(
        "static const struct {\n    bool is_keyed, is_organisation;\n    const char *alias, *subject, *principal;\n} vector_principals[] = {"
    )
    for alias, subject in (
        ("sb-prod", "8f6e2f3c-1d2b-4c5a-9e0f-112233445566"),
        ("a", "bc"),
        ("ab", "c"),
        ("key", "Zoë"),
    ):
        for label, keyed, organisation in (("lgp/1", 1, 0), ("lgo/1", 1, 1), ("lgp/0", 0, 0), ("lgo/0", 0, 1)):
            made = principal(label, KEY if keyed else None, alias, subject)
            values = [("false", "true")[keyed], ("false", "true")[organisation]]
            # Octal escapes end by themselves.
            shown = "".join(chr(c) if 32 <= c < 127 else f"\\{c:03o}" for c in subject.encode())
            print(f'    {{{values[0]}, {values[1]}, "{alias}", "{shown}", "{made}"}},')
    print("};\n\n#endif")


main()
