"""Serving the chat page: address, access, caching, and content security policy."""

import gzip
import re
import subprocess
from contextlib import contextmanager

import httpx
import pytest
from server import ROOT, Server

pytestmark = pytest.mark.beyond_peer("has no page")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}


def raw(http, path: str, method: str = "GET", **options) -> tuple[httpx.Response, bytes]:
    """Returns the response and its raw body."""
    with http.stream(method, path, **options) as answer:
        return answer, b"".join(answer.iter_raw())


def is_built(text: str) -> bool:
    return "built without the chat page" not in text


def linked(text: str) -> list[str]:
    """Returns the files that the page loads."""
    return re.findall(r'(?:src|href)="\./((?:assets/|icon)[^"]+)"', text)


@contextmanager
def running(*options: str):
    server = Server(options=list(options)).start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            yield http
        server.stop()
    finally:
        server.remove()


def check_headers(answer: httpx.Response) -> None:
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "accept-encoding" in answer.headers["vary"]


def test_the_page_is_at_the_root(http):
    answer = http.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    check_headers(answer)
    assert answer.text.startswith("<!doctype html>")
    # The page is self-contained, and works below any prefix.
    assert not re.search(r'(?:src|href)="(?:https?:|/)', answer.text)


def test_without_the_page_the_root_explains_how_to_build_it(http):
    text = http.get("/").text
    if is_built(text):
        text = (ROOT / "src/api/fallback/index.html").read_text()
    assert "install-deps" in text and 'href="docs"' in text
    assert not re.search(r"<script|<style|style=", text)


def test_its_assets_are_immutable(http):
    text = http.get("/").text
    files = linked(text)
    assert not is_built(text) or {path.rsplit(".", 1)[1] for path in files} == {"js", "css", "svg"}
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for path in files:
        answer = http.get("/" + path)
        assert answer.status_code == 200 and answer.content
        assert answer.headers["content-type"] == types[path.rsplit(".", 1)[1]]
        kept = "public, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
        assert answer.headers["cache-control"] == kept
        check_headers(answer)


def test_packed_and_unpacked_are_the_same(http):
    for path in ["", *linked(http.get("/").text)]:
        packed, bytes_packed = raw(http, "/" + path, headers=GZIP)
        assert packed.headers["content-encoding"] == "gzip"
        for headers in (PLAIN, {"Accept-Encoding": "gzip;q=0, identity"}, PLAIN):
            plain, bytes_plain = raw(http, "/" + path, headers=headers)
            assert "content-encoding" not in plain.headers
            assert int(plain.headers["content-length"]) == len(bytes_plain)
            assert gzip.decompress(bytes_packed) == bytes_plain
        assert int(packed.headers["content-length"]) == len(bytes_packed)


def test_cached_files_are_not_sent_again(http):
    for path in ["", *linked(http.get("/").text)]:
        first = http.get("/" + path)
        tag = first.headers["etag"]
        assert re.fullmatch(r'W/"[0-9a-f]{32}"', tag)
        strong = tag.removeprefix("W/")
        for known in (tag, strong, "*", f'"a,b", {tag}', f'W/"other" ,{strong}'):
            for encoding in (GZIP, PLAIN):
                answer, body = raw(http, "/" + path, headers={"If-None-Match": known, **encoding})
                assert (answer.status_code, body) == (304, b"")
                assert answer.headers["etag"] == tag
                assert answer.headers["cache-control"] == first.headers["cache-control"]
                assert "content-length" not in answer.headers
        for unknown in ('"other"', "", strong.strip('"'), f'"{tag}'):
            assert http.get("/" + path, headers={"If-None-Match": unknown}).status_code == 200


def test_heads(http):
    for path in ["", *linked(http.get("/").text)]:
        for encoding in (GZIP, PLAIN):
            whole, body = raw(http, "/" + path, headers=encoding)
            head, nothing = raw(http, "/" + path, "HEAD", headers=encoding)
            assert (head.status_code, nothing) == (200, b"")
            assert int(head.headers["content-length"]) == len(body)
            for name in ("etag", "cache-control", "content-type", "content-security-policy", "vary"):
                assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    "path",
    [
        "/assets", "/assets/", "/assets/none.js", "/assets/../index.html", "/assets/..%2findex.html", "/index.html",
        "/assets/%2e%2e/index.html", "/assets//index.html", "/assets/" + "a" * 2000, "/assets/a%00b", "/icon.png",
        "/assets/../../../etc/passwd", "/page", "/page/none", "/favicon.ico",
    ],
)  # fmt: skip
def test_an_unknown_path_is_a_json_error(server, path):
    # Sent unchanged: a client would normalise the path.
    done = subprocess.run(
        ["curl", "-s", "--path-as-is", "-w", "\n%{http_code} %{content_type}", server.url + path],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    body, status = done.stdout.rsplit("\n", 1)
    assert status in ("404 application/json", "400 application/json")
    assert body.startswith('{"detail":')


def test_it_can_only_be_read(http):
    for path in ("/", "/icon.svg", "/assets/x.js"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert http.request(method, path).status_code == 405
        assert http.options(path).headers["allow"] == "GET, HEAD, OPTIONS"


def test_it_is_nothing_of_the_api(http):
    paths = http.get("/openapi.json").json()["paths"]
    assert not [path for path in paths if path == "/" or path.startswith(("/assets", "/page", "/icon"))]


def test_the_page_can_be_left_out():
    with running("--no-page-enabled") as http:
        for path in ("/", "/icon.svg", "/page/settings"):
            assert http.get(path).status_code == 404
        assert http.get("/info").status_code == 200


def test_below_a_prefix():
    with running("--http-mount-prefix", "/agents") as http:
        answer = http.get("/agents")
        assert (answer.status_code, answer.headers["location"]) == (308, "./agents/")
        page = http.get("/agents/")
        assert page.status_code == 200
        for path in linked(page.text):
            assert http.get("/agents/" + path).status_code == 200
        assert http.get("/agents/page/settings").json()["needs_sign_in"] is False
        assert http.get("/").status_code == 404


def test_its_address_is_printed_at_the_start():
    server = Server(options=["--http-mount-prefix", "/agents"]).start()
    try:
        said = server.log.read_text()
        server.stop()
    finally:
        server.remove()
    assert re.search(rf"^  page +http://localhost:{server.port}/agents/$", said, re.MULTILINE)


def test_files_become_c(tmp_path):
    """The generated C contains the bytes of the files."""
    (tmp_path / "page/assets/deep").mkdir(parents=True)
    files = {
        "index.html": b"<!doctype html>", "assets/a-1.js": bytes(range(256)) * 40, "assets/deep/b.css": b"",
        "icon.svg": b"<svg/>",
    }  # fmt: skip
    for path, data in files.items():
        (tmp_path / "page" / path).write_bytes(data)
    out = tmp_path / "out.c"
    command = [ROOT / "scripts/embed", "some_files", tmp_path / "page", out]
    subprocess.run(command, check=True, timeout=60)
    text, made = out.read_text(), out.stat().st_mtime_ns
    found = {}
    for path, number, length in re.findall(r'\{"/([^"]+)", "[^"]+", \(const char \*\)bytes_(\d+), [^,]+, (\d+)', text):
        numbers = re.search(rf"bytes_{number}\[\] = \{{\n([^}}]*)\}}", text)[1]
        found[path] = gzip.decompress(bytes(int(each) for each in re.findall(r"\d+", numbers)))
        assert len(found[path]) == int(length)
    assert found == files
    assert len(re.findall(r", true\},", text)) == 2  # those in assets
    subprocess.run(command, check=True, timeout=60)
    assert out.stat().st_mtime_ns == made  # nothing to recompile
    (tmp_path / "page/strange.xyz").write_bytes(b"?")
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and "strange.xyz" in refused.stderr
