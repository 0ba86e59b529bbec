"""Sign-in from the page: its settings, and exchanging codes for tokens."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from oidc import CLIENT, OidcServer, challenge_of
from programs import Heddle, collect, wait_for
from tokens import Issuer

VERIFIER = "a-verifier-of-the-tests.that_is~long-enough-for-pkce"
SECRET = "a client's secret: with/signs+of&every=kind%"


@pytest.fixture
def oidc():
    """oidc(client_secret=…): an issuer for the duration of the test."""
    made: list[OidcServer] = []

    def create(**options) -> OidcServer:
        made.append(OidcServer(Issuer("hall", "ES256"), **options))
        return made[-1].__enter__()

    yield create
    for server in made:
        server.stop()
    for server in made:
        assert not server.errors, server.errors


def way(**more) -> dict:
    return {"issuer": "hall", "client_id": CLIENT, "name": "The hall", **more}


@pytest.fixture
def open_with(secured):
    """open_with(issuer, …): a server whose users sign in there."""

    def create(issuer: OidcServer, entry: dict | None = None, others=(), **options):
        config = {"page": {"sign_in": [entry or way()]}}
        return secured(issuers=[issuer.issuer.config(issuer.url), *others], config=config, **options)

    return create


def exchange(server, body, status: int = 200, headers: dict | None = None) -> dict:
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    answer = httpx.post(server.url + "/page/token", content=content, headers=headers, timeout=60)
    assert answer.status_code == status, answer.text
    if "cache-control" in answer.headers or status == 200:
        assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def grant(server, issuer: OidcServer, **more) -> dict:
    address = server.url + "/"
    code = issuer.code(VERIFIER, address)
    return {"name": "The hall", "code": code, "code_verifier": VERIFIER, "redirect_uri": address, **more}


# ---- settings ---------------------------------------------------------------


def test_without_users_there_is_no_sign_in():
    for server in (create() for create in collect(Heddle)):
        answer = httpx.get(server.url + "/page/settings", timeout=60)
        told = answer.json()
        assert isinstance(told.pop("version"), str)
        assert told == {"needs_sign_in": False, "sign_in": []}
        assert httpx.post(server.url + "/page/token", json={"name": "x", "code": "y"}, timeout=60).status_code == 404


def test_with_users_and_no_issuer_to_sign_in_with(secured):
    server = secured()
    told = server.ask("GET", "/page/settings")
    assert (told["needs_sign_in"], told["sign_in"]) == (True, [])
    assert exchange(server, {"name": "main", "code": "x"}, 404)["detail"] == "unknown sign-in name"


def test_the_page_gets_the_sign_in_methods(oidc, open_with):
    issuer = oidc(client_secret=SECRET)
    server = open_with(issuer, way(client_secret={"env": "HALL_SECRET"}), env={"HALL_SECRET": SECRET})
    for _ in range(3):
        answer = httpx.get(server.url + "/page/settings", timeout=60)
        assert answer.json()["needs_sign_in"] is True
        assert answer.json()["sign_in"] == [
            {
                "name": "The hall", "issuer": issuer.base, "client_id": CLIENT, "scope": "openid profile",
                "authorization_endpoint": issuer.base + "/authorize",
            }
        ]  # fmt: skip
        assert SECRET not in answer.text
    assert len(issuer.asked("/.well-known/openid-configuration")) == 1


@pytest.mark.parametrize("mode", ["down", "error", "garbage", "not keys", "huge"])
def test_an_unreachable_issuer(oidc, open_with, mode):
    issuer = oidc()
    server = open_with(issuer)
    issuer.mode = mode
    assert server.ask("GET", "/page/settings")["sign_in"][0]["authorization_endpoint"] is None
    assert "is unavailable" in exchange(server, grant(server, issuer), 503)["detail"]
    # The issuer recovers.
    issuer.mode = "good"

    def is_back() -> bool:
        return server.ask("GET", "/page/settings")["sign_in"][0]["authorization_endpoint"] is not None

    wait_for(is_back)
    assert exchange(server, grant(server, issuer))["token"]


def test_an_issuer_that_is_silent_is_waited_for_once(oidc, secured):
    ended = []

    def be_silent(peer, request) -> None:
        peer.wait_closed()
        ended.append(request.path)

    good, silent = oidc(), OidcServer(Issuer("main", "ES256"))
    silent.mode = be_silent
    with silent:
        ways = [way(), way(issuer="main", name="Another")]
        issuers = [each.issuer.config(each.url) for each in (good, silent)]
        server = secured(issuers=issuers, config={"page": {"sign_in": ways}})
        for _ in range(3):
            told = server.ask("GET", "/page/settings")["sign_in"]
            assert [each["authorization_endpoint"] for each in told] == [good.base + "/authorize", None]
        assert len(ended) <= 1  # the other requests did not wait for it
        assert exchange(server, grant(server, good))["token"]
        server.stop()


@pytest.mark.parametrize(
    "extra",
    [
        {"issuer": "https://somebody.test"},
        {"token_endpoint": "http://example.com/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": None},
        {"code_challenge_methods_supported": ["plain"]},
    ],
)
def test_documents_that_are_not_believed(oidc, open_with, extra):
    issuer = oidc()
    issuer.extra = extra
    server = open_with(issuer)
    assert server.ask("GET", "/page/settings")["sign_in"][0]["authorization_endpoint"] is None


def test_configured_endpoints_are_not_fetched(oidc, open_with):
    issuer = oidc()
    entry = way(
        authorization_endpoint=issuer.base + "/authorize", token_endpoint=issuer.base + "/token", scope="openid"
    )
    server = open_with(issuer, entry)
    told = server.ask("GET", "/page/settings")["sign_in"][0]
    assert (told["authorization_endpoint"], told["scope"]) == (issuer.base + "/authorize", "openid")
    assert exchange(server, grant(server, issuer))["token"]
    assert issuer.asked("/.well-known/openid-configuration") == []


# ---- a whole sign-in --------------------------------------------------------


def sign_in(server, issuer: OidcServer) -> dict:
    """Signs in as the page does, starting with the settings."""
    told = server.ask("GET", "/page/settings")["sign_in"][0]
    address = server.url + "/"
    query = {
        "response_type": "code", "client_id": told["client_id"], "redirect_uri": address, "scope": told["scope"],
        "state": "s1", "code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256",
    }  # fmt: skip
    answer = httpx.get(f"{told['authorization_endpoint']}?{urlencode(query)}", timeout=60)
    assert answer.status_code == 302 and answer.headers["location"].startswith(address)
    back = parse_qs(urlsplit(answer.headers["location"]).query)
    assert back["state"] == ["s1"]
    body = {"name": told["name"], "code": back["code"][0], "code_verifier": VERIFIER, "redirect_uri": address}
    return exchange(server, body, headers={"Origin": server.url, "Sec-Fetch-Site": "same-origin"})


@pytest.mark.parametrize("secret", [None, "basic", "post"])
def test_a_person_signs_in(oidc, open_with, secret):
    issuer = oidc(client_secret=SECRET if secret else None)
    if secret == "post":
        issuer.extra = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    entry = way(client_secret={"env": "HALL_SECRET"}) if secret else way()
    server = open_with(issuer, entry, env={"HALL_SECRET": SECRET})
    got = sign_in(server, issuer)
    assert set(got) == {"token", "expires_in", "refresh_token"}
    assert 0 < got["expires_in"] <= issuer.lifetime and got["expires_in"] != 99  # from the token
    assert got["refresh_token"] in issuer.refreshes
    thread = server.ask("POST", "/threads", token=got["token"], json={})
    assert server.ask("GET", f"/threads/{thread['thread_id']}", token=issuer.issuer.token("alice"))
    # Refreshes the token, without the user.
    again = exchange(server, {"name": "The hall", "refresh_token": got["refresh_token"]})
    assert server.ask("GET", f"/threads/{thread['thread_id']}", token=again["token"])
    asked = issuer.asked("/token")
    assert len(asked) == 2
    assert all(("authorization" in each.headers) == (secret == "basic") for each in asked)
    assert all((b"client_secret=" in each.body) == (secret == "post") for each in asked)


def test_the_id_token_where_the_access_token_is_for_others(oidc, open_with):
    issuer = oidc()
    issuer.token_mode = "opaque"
    server = open_with(issuer)
    got = sign_in(server, issuer)
    assert server.ask("POST", "/threads/count", token=got["token"], json={}) == 0


# ---- refusals ---------------------------------------------------------------


def test_codes_are_valid_once_and_for_their_client(oidc, open_with):
    issuer = oidc()
    server = open_with(issuer)
    body = grant(server, issuer)
    assert exchange(server, body)["token"]
    assert exchange(server, body, 400)["detail"] == "the issuer refused: invalid_grant"
    for more in (
        {"code_verifier": VERIFIER + "x"},
        {"redirect_uri": server.url + "/other"},
        {"code": "another"},
    ):
        told = exchange(server, grant(server, issuer) | more, 400)["detail"]
        assert told == "the issuer refused: invalid_grant"
    assert exchange(server, {"name": "The hall", "refresh_token": "made up"}, 400)


def test_other_pages_may_not(oidc, open_with):
    issuer = oidc()
    server = open_with(issuer)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": server.url, "Sec-Fetch-Site": "same-site"},
    ):
        exchange(server, grant(server, issuer), 403, headers=headers)
    assert issuer.asked("/token") == []
    # Nor can it send the code of the page's users elsewhere.
    body = grant(server, issuer) | {"redirect_uri": "https://evil.example/"}
    assert "redirect_uri" in exchange(server, body, 422, headers={"Origin": server.url})["detail"]
    assert issuer.asked("/token") == []


def test_not_even_pages_that_may_use_the_api(oidc, secured):
    issuer = oidc()
    config = {"page": {"sign_in": [way()]}, "cors": {"allow_origins": ["https://app.example"]}}
    server = secured(issuers=[issuer.issuer.config(issuer.url)], config=config)
    assert (
        "own page" in exchange(server, grant(server, issuer), 403, headers={"Origin": "https://app.example"})["detail"]
    )
    assert issuer.asked("/token") == []


BAD = {
    "nothing": (b"", 422),
    "no JSON": (b"{", 422),
    "a list": ([], 422),
    "a number for a code": ({"name": "The hall", "code": 7}, 422),
    "no name": ({"code": "x"}, 404),
    "another name": ({"name": "hall", "code": "x"}, 404),
    "neither": ({"name": "The hall"}, 422),
    "both": ({"name": "The hall", "code": "x", "refresh_token": "y"}, 422),
    "no verifier": ({"name": "The hall", "code": "x", "redirect_uri": "http://localhost/"}, 422),
    "a short verifier": ({"name": "The hall", "code": "x", "code_verifier": "short", "redirect_uri": "http://h/"}, 422),
    "an odd verifier": ({"name": "The hall", "code": "x", "code_verifier": "!" * 50, "redirect_uri": "http://h/"}, 422),
    "no address": ({"name": "The hall", "code": "x", "code_verifier": "a" * 43}, 422),
    "an odd address": ({"name": "The hall", "code": "x", "code_verifier": "a" * 43, "redirect_uri": "file:///x"}, 422),
    "a fragment": ({"name": "The hall", "code": "x", "code_verifier": "a" * 43, "redirect_uri": "http://h/#x"}, 422),
    "a line break": ({"name": "The hall", "code": "x\r\nHost: y", "code_verifier": "a" * 43, "redirect_uri": "http://h/"}, 422),
    "a long code": ({"name": "The hall", "code": "x" * 5000, "code_verifier": "a" * 43, "redirect_uri": "http://h/"}, 422),
    "a long token": ({"name": "The hall", "refresh_token": "x" * 9000}, 422),
    "a large body": (b'{"name": "' + b"x" * 40000 + b'"}', 413),
}  # fmt: skip


def test_invalid_requests_contact_no_issuer(oidc, open_with):
    issuer = oidc()
    server = open_with(issuer)
    for what, (body, status) in BAD.items():
        assert exchange(server, body, status)["detail"], what
    assert issuer.asked("/token") == []
    assert httpx.get(server.url + "/page/token", timeout=60).status_code == 405


@pytest.mark.parametrize("mode", ["down", "garbage", "huge", "redirect"])
def test_a_token_endpoint_that_fails(oidc, open_with, mode):
    issuer = oidc()
    server = open_with(issuer)
    issuer.token_mode = mode
    assert "issuer" in exchange(server, grant(server, issuer), 502)["detail"]
    assert issuer.asked("/elsewhere") == []
    issuer.token_mode = "good"
    assert exchange(server, grant(server, issuer))["token"]


def test_a_client_that_the_issuer_does_not_know(oidc, open_with):
    issuer = oidc(client_secret=SECRET)
    server = open_with(issuer, way(client_secret="another one"))
    assert exchange(server, grant(server, issuer), 502)["detail"] == "the issuer refused: invalid_client"


def test_tokens_that_this_server_would_not_take(oidc, open_with):
    issuer = oidc()
    other = Issuer("main")
    server = open_with(issuer, others=[other])
    # A token of an unknown issuer, of an issuer other than the configured one, and an expired one.
    issuer.token_mode, issuer.stranger = "foreign", Issuer("nowhere", "ES256")
    assert "does not accept" in exchange(server, grant(server, issuer), 403)["detail"]
    issuer.stranger = other
    assert "does not accept" in exchange(server, grant(server, issuer), 403)["detail"]
    issuer.token_mode, issuer.lifetime = "good", -3600
    assert "does not accept" in exchange(server, grant(server, issuer), 403)["detail"]


def test_requests_are_limited_per_address(oidc, open_with):
    issuer = oidc()
    server = open_with(issuer)
    body = {"name": "The hall", "refresh_token": "made up"}
    with httpx.Client(timeout=60) as http:
        for _ in range(1000):
            answer = http.post(server.url + "/page/token", json=body)
            if answer.status_code == 429:
                break
            assert answer.status_code == 400
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 61


def test_a_server_ends_while_an_issuer_is_silent(oidc, open_with):
    issuer = oidc()
    server = open_with(issuer)
    server.ask("GET", "/page/settings")
    issuer.token_mode = lambda peer, request: peer.wait_closed()
    body = grant(server, issuer)

    def ask() -> None:
        with contextlib.suppress(httpx.TransportError):
            httpx.post(server.url + "/page/token", json=body, timeout=120)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: issuer.asked("/token"), what="the exchange")
    server.stop()  # requires a clean exit
    asking.join(120)
    assert not asking.is_alive()


@pytest.mark.parametrize("what", ["the document", "the tokens"])
def test_a_person_leaves_in_the_middle(oidc, open_with, what):
    issuer = oidc()
    server = open_with(issuer)
    go_on = threading.Event()
    body = json.dumps(grant(server, issuer)).encode()
    head = f"POST /page/token HTTP/1.1\r\nHost: {server.url[7:]}\r\nContent-Length: {len(body)}\r\n\r\n"

    def describe(peer, request) -> None:
        go_on.wait(60)
        issuer.mode = "good"
        issuer.describe(peer, request)

    def exchange_late(peer, request) -> None:
        go_on.wait(60)
        peer.answer(*issuer.tokens(request))

    if what == "the document":
        issuer.mode, path = describe, "/.well-known/openid-configuration"
    else:
        issuer.token_mode, path = exchange_late, "/token"
    with socket.create_connection(urlsplit(server.url).netloc.split(":")) as person:
        person.sendall(head.encode() + body)
        wait_for(lambda: issuer.asked(path), what=what)
        person.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    go_on.set()
    wait_for(lambda: issuer.asked("/token"), what="the exchange")
    issuer.token_mode = "good"
    assert exchange(server, grant(server, issuer))["token"]
    server.stop()


# ---- secrets ----------------------------------------------------------------


def test_nothing_of_it_is_written_anywhere(oidc, secured):
    issuer = oidc(client_secret=SECRET)
    entry = way(client_secret={"env": "HALL_SECRET"})
    server = secured(
        issuers=[issuer.issuer.config(issuer.url)], env={"HALL_SECRET": SECRET},
        config={"page": {"sign_in": [entry]}, "log": {"level": "debug"}, "audit": {"file": "audit.log"}},
    )  # fmt: skip
    first = grant(server, issuer)
    got = exchange(server, first)
    issuer.token_mode = "garbage"
    failed = grant(server, issuer)
    exchange(server, failed, 502)
    issuer.token_mode = "good"
    exchange(server, grant(server, issuer) | {"code": "a-code-nobody-made"}, 400)
    server.stop()
    hidden = [first["code"], failed["code"], "a-code-nobody-made", VERIFIER, got["token"], got["refresh_token"], SECRET]
    for path in server.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [each for each in hidden if each.encode() in data], path


# ---- configuration ----------------------------------------------------------

WRONG = {
    "page.sign_in: needs `auth`": None,
    "an array of objects": {"issuer": "main"},
    "page.sign_in[0]: must be an object": ["main"],
    "page.sign_in[0].issuer: is missing": [{"client_id": "x"}],
    "page.sign_in[0].issuer: is not an alias": [{"issuer": "nobody", "client_id": "x"}],
    "page.sign_in[0].client_id: is missing": [{"issuer": "main"}],
    'page.sign_in[0]: unknown member "clientid"': [{"issuer": "main", "clientid": "x"}],
    "page.sign_in[1].name: is the name of another": [{"issuer": "main", "client_id": "x"}] * 2,
    "page.sign_in[0].client_secret.env: the variable NOT_SET": [
        {"issuer": "main", "client_id": "x", "client_secret": {"env": "NOT_SET"}}
    ],
    "page.sign_in[0].token_endpoint: must be an https URL": [
        {"issuer": "main", "client_id": "x", "token_endpoint": "http://example.com/token"}
    ],
    "must have both `authorization_endpoint` and": [
        {"issuer": "main", "client_id": "x", "token_endpoint": "https://example.com/token"}
    ],
}


def test_configurations_that_are_wrong(secured):
    server = secured()
    config = json.loads(server.config_file.read_text())
    for text, entries in WRONG.items():
        changed = dict(config) | {"page": {"sign_in": entries or [{"issuer": "main", "client_id": "x"}]}}
        if entries is None:
            del changed["auth"]
        path = server.folder / "changed.json"
        path.write_text(json.dumps(changed))
        done = server.tool("serve", "--check", "--config", str(path), status=2)
        assert text in done.stderr, (text, done.stderr)
