"""Configuration of authentication: the examples are valid, and errors name their place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tokens import Issuer

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "auth"
ENTRY = Issuer("main").config()


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.jsonc")), ids=lambda path: path.name)
def test_the_examples_are_good(idle, example):
    server = idle()
    file = shutil.copy(example, server.folder / "heddle.jsonc")
    refused = server.tool("serve", "--check", "--config", str(file), status=2)
    assert "auth.key.file" in refused.stderr  # the file does not exist yet
    server.tool("key", "principal", "principal.key")
    assert "valid" in server.tool("serve", "--check", "--config", str(file)).stdout
    assert not list(server.folder.glob("heddle.db*"))


@pytest.fixture
def check(idle):
    """check(config, …): the output of `heddle serve --check`."""

    def run(config: dict, env: dict | None = None, options: tuple = (), text: str | None = None):
        server = idle(env=env)
        server.config_file.write_text(text or json.dumps(config))
        return server.tool("serve", "--check", "--config", str(server.config_file), *options, status=None)

    return run


MISTAKES = {
    "auth: must be an object": {"auth": []},
    'auth: unknown member "issuer"': {"auth": {"issuer": []}},
    "auth.issuers[0].audience: is missing": {"auth": {"issuers": [{k: v for k, v in ENTRY.items() if k != "audience"}]}},
    "auth.issuers[0].secret: is too short": {"auth": {"issuers": [ENTRY | {"secret": {"env": "SHORT"}}]}},
    "auth.issuers[0].secret.env: the variable NOT_THERE is not set": {
        "auth": {"issuers": [ENTRY | {"secret": {"env": "NOT_THERE"}}]}
    },
    "auth.issuers[0].secret.file: ": {"auth": {"issuers": [ENTRY | {"secret": {"file": "nowhere"}}]}},
    "auth.issuers[0].jwks_url: must be an https URL": {
        "auth": {"issuers": [{k: v for k, v in ENTRY.items() if k != "secret"} | {
            "algorithms": ["RS256"], "jwks_url": "http://example.com/keys"}]}
    },
    "auth.key: is not a key of 32 bytes": {"auth": {"key": {"id": "1", "env": "SHORT"}}},
}  # fmt: skip


@pytest.mark.parametrize("place", sorted(MISTAKES))
def test_mistakes_are_named_by_their_place(check, place):
    done = check(MISTAKES[place], {"SHORT": "only-24-bytes-of-secrets"})
    assert done.returncode == 2, done
    assert place in done.stderr, done.stderr
    assert "only-24-bytes-of-secrets" not in done.stderr + done.stdout


def test_files_have_comments(check):
    text = '// one\n{"port": 0, /* two */ "auth": {"api_keys": true /* three */}} // four\n'
    assert check({}, text=text).returncode == 0
    assert check({}, text='{"port": 0,}').returncode == 2


def test_only_with_users_others_may_connect(check):
    assert check({}, options=("--host", "0.0.0.0")).returncode == 2
    assert check({"auth": {"api_keys": True}}, options=("--host", "0.0.0.0")).returncode == 0


def test_it_is_accepted_in_the_file_only(check):
    assert check({}, options=("--auth", "{}")).returncode == 2


def test_files_are_found_beside_the_configuration(idle):
    """Also when the server is started in another folder."""
    server = idle()
    folder = server.folder / "etc"
    folder.mkdir()
    server.tool("key", "principal", str(folder / "principal.key"))
    (folder / "heddle.json").write_text(json.dumps({"auth": {"key": {"id": "1", "file": "principal.key"}}}))
    server.tool("serve", "--check", "--config", "etc/heddle.json")
