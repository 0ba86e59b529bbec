"""An OpenID Connect issuer: discovery document, authorization endpoint, token endpoint, keys.

    issuer = Issuer("hall", "ES256")
    with OidcServer(issuer, client_secret="…") as server: …

It checks what a real one checks: a code is valid once, for its client, redirect_uri and challenge.
`mode` applies to the document (jwks.py); `token_mode` of the token endpoint is "good", "opaque"
(the access token is for another audience), "foreign" (tokens of `stranger`), "down", "garbage",
"huge", "redirect", or a function(peer, request).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from jwks import HUGE, JwksServer
from scripted import Peer, Request
from tokens import Issuer

CLIENT = "page"


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class OidcServer(JwksServer):
    def __init__(self, issuer: Issuer, client_secret: str | None = None, subject: str = "alice"):
        super().__init__(issuer)
        self.issuer, self.subject, self.client_secret = issuer, subject, client_secret
        issuer.url = self.base
        self.token_mode = "good"
        self.stranger: Issuer | None = None
        self.extra: dict = {}  # additional members of the document
        self.lifetime = 600
        self.codes: dict[str, dict] = {}
        self.refreshes: set[str] = set()

    # ---- for tests ------------------------------------------------------

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if urlsplit(request.path).path == path]

    def code(self, verifier: str, redirect_uri: str, client_id: str = CLIENT) -> str:
        """Creates an authorization code, as after a user's consent."""
        code = secrets.token_urlsafe(24)
        self.codes[code] = {
            "challenge": challenge_of(verifier), "redirect_uri": redirect_uri, "client_id": client_id,
        }  # fmt: skip
        return code

    # ---- the issuer ---------------------------------------------------------

    def handle(self, peer: Peer, request: Request) -> None:
        path = urlsplit(request.path).path
        if path == "/.well-known/jwks.json":
            peer.answer(200, self.document())
        elif path == "/.well-known/openid-configuration":
            self.describe(peer, request)
        elif path == "/authorize" and request.method == "GET":
            self.authorize(peer, request)
        elif path == "/token" and request.method == "POST":
            self.exchange(peer, request)
        else:
            peer.answer(404, {"error": "not_found"})

    def describe(self, peer: Peer, request: Request) -> None:
        if self.mode != "good":
            super().handle(peer, request)
            return
        document = {
            "issuer": self.base, "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token", "jwks_uri": self.url,
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        }  # fmt: skip
        peer.answer(200, {name: value for name, value in (document | self.extra).items() if value is not None})

    def authorize(self, peer: Peer, request: Request) -> None:
        """Consents at once, for any user."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            peer.answer(400, "a code with S256 is needed")
            return
        code = secrets.token_urlsafe(24)
        self.codes[code] = {
            "challenge": asked["code_challenge"], "redirect_uri": asked["redirect_uri"], "client_id": asked["client_id"],
        }  # fmt: skip
        back = urlencode({"code": code, "state": asked.get("state", "")})
        mark = "&" if "?" in asked["redirect_uri"] else "?"
        peer.answer(302, "", {"Location": f"{asked['redirect_uri']}{mark}{back}"})

    def exchange(self, peer: Peer, request: Request) -> None:
        if callable(self.token_mode):
            self.token_mode(peer, request)
        elif self.token_mode == "down":
            peer.reset()
        elif self.token_mode == "garbage":
            peer.answer(200, b"<html>\xff\x00{{{", None, "application/json")
        elif self.token_mode == "huge":
            peer.answer(200, HUGE, None, "application/json")
        elif self.token_mode == "redirect":
            peer.answer(307, "", {"Location": f"{self.base}/elsewhere"})
        else:
            status, answer = self.tokens(request)
            peer.answer(status, answer, {"Cache-Control": "no-store"})

    def client_of(self, request: Request, form: dict) -> str | None:
        """Returns the authenticated client, or None."""
        if self.client_secret is None:
            return form.get("client_id")
        header = request.headers.get("authorization", "")
        if header.startswith("Basic "):
            pair = base64.b64decode(header[6:]).decode().split(":", 1)
            client, secret = (unquote(part) for part in pair)
        else:
            client, secret = form.get("client_id"), form.get("client_secret")
        return client if secret == self.client_secret else None

    def tokens(self, request: Request) -> tuple[int, dict]:
        form = {name: values[0] for name, values in parse_qs(request.body.decode(), strict_parsing=True).items()}
        client = self.client_of(request, form)
        if client != CLIENT:
            return 401, {"error": "invalid_client", "error_description": f"who is {client}"}
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refreshes:
                return 400, {"error": "invalid_grant"}
            self.refreshes.discard(form["refresh_token"])
        else:
            kept = self.codes.pop(form["code"], None)
            wanted = kept and (kept["challenge"], kept["redirect_uri"], kept["client_id"])
            if wanted != (challenge_of(form["code_verifier"]), form["redirect_uri"], client):
                return 400, {"error": "invalid_grant", "error_description": f"not {form['code']}"}
        return 200, self.made()

    def made(self) -> dict:
        issuer = self.stranger if self.token_mode == "foreign" else self.issuer
        exp = issuer.claims(self.subject)["iat"] + 10 + self.lifetime
        refresh = secrets.token_urlsafe(24)
        self.refreshes.add(refresh)
        answer = {
            "access_token": issuer.token(self.subject, exp=exp), "token_type": "Bearer", "expires_in": 99,
            "refresh_token": refresh,
        }  # fmt: skip
        if self.token_mode == "opaque":
            answer["access_token"] = secrets.token_urlsafe(40)
            answer["id_token"] = issuer.token(self.subject, exp=exp, nonce="1")
        return answer
