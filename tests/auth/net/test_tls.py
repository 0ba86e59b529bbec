"""`heddle serve` with certificate files: the whole API over TLS, with renewal while it runs."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest
from programs import collect, wait_for
from secured import Secured


def make(folder, name: str) -> tuple[str, str]:
    files = str(folder / f"{name}.crt"), str(folder / f"{name}.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


class Tls(Secured):
    """A server whose folder has its certificate before it starts."""

    def __init__(self, **options):
        config = {"tls": {"certificate": "server.crt", "key": "server.key"}} | options.pop("config", {})
        super().__init__(config=config, **options)
        make(self.folder, "server")
        file = self.folder / "config.json"
        file.write_text(file.read_text().replace('"server.', f'"{self.folder}/server.'))

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "server.crt"))

    def client(self, token=None, **options):
        return super().client(token, verify=self.trust, **options)

    def answers(self) -> bool:
        try:
            return httpx.get(self.url + "/ok", verify=self.trust, timeout=30).status_code == 200
        except (httpx.TransportError, OSError):
            return False


@pytest.fixture
def tls():
    yield from collect(Tls)


def peer_name(server) -> str:
    with server.client() as http, http.stream("GET", "/ok") as answer:
        certificate = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    return certificate["subject"][0][0][1]


def test_runs_and_streams(tls):
    server = tls()
    body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "hello"}]}}
    with server.as_user("alice") as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        seen = []
        with http.stream("POST", f"/threads/{thread}/runs/stream", json=body | {"stream_mode": "values"}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            seen += [line for line in answer.iter_lines() if line.startswith("event:")]
        assert seen[0] == "event: metadata" and seen[-1] == "event: end"
        large = {"metadata": {"text": "x" * 3_000_000}}
        made = http.post("/threads", json=large).json()
        assert http.get(f"/threads/{made['thread_id']}").json()["metadata"]["text"] == large["metadata"]["text"]
        agents = http.get("/info", headers={"Host": "agents.example"})
        assert agents.headers["strict-transport-security"] == "max-age=31536000"


def test_webhooks_to_the_server_itself(tls):
    server = tls()
    with server.as_user("alice") as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        run = {"assistant_id": "demo", "input": {}, "webhook": f"/threads/{thread}"}
        assert http.post("/runs/wait", json=run).status_code == 200
    # The path does not accept it, but the server received the request and responded over TLS.
    wait_for(
        lambda: "webhook" in server.tail(1000) and "dropped, the status is" in server.tail(1000), what="the webhook"
    )


def test_a_renewed_certificate_is_taken_up(tls):
    server = tls()
    assert peer_name(server) == "server"
    new = [Path(name).read_bytes() for name in make(server.folder, "renewed")]
    for kind, data in zip(("crt", "key"), new, strict=True):
        (server.folder / f"server.{kind}").write_bytes(data)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "was reloaded" in server.tail(1000), what="the certificate")
    assert peer_name(server) == "renewed"
    (server.folder / "server.key").write_text("nonsense")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "the old one stays in use" in server.tail(1000), what="the refusal")
    assert peer_name(server) == "renewed"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "server.crt").unlink(), r"certificate in .*server\.crt: No such file"),
        (lambda folder: (folder / "server.key").write_text("nonsense"), r"key in .*server\.key"),
        (
            lambda folder: make(folder, "other") and (folder / "other.key").rename(folder / "server.key"),
            r"key in .*mismatch",
        ),
    ],
)
def test_invalid_certificates_prevent_the_start(change, says):
    server = Tls()
    try:
        change(server.folder)
        with pytest.raises(Exception) as error:
            server.start()
        assert re.search(says, str(error.value)), str(error.value)
    finally:
        server.remove()


def test_one_file_is_not_enough():
    server = Secured(config={"tls": {"certificate": "x"}})
    try:
        with pytest.raises(Exception, match=r"tls.certificate and tls.key belong together"):
            server.start()
    finally:
        server.remove()
