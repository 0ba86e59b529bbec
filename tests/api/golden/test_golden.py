"""Stored rows and responses equal the golden files (tests/data/golden)."""

from __future__ import annotations

import gzip
import re
import subprocess

import pytest
from auth_scenario import CONFIG, ENVIRONMENT, AuthScenario
from golden import FOLDER, Names, compare
from golden_rows import dump, export_text, open_database, schema
from listener import closed_port
from programs import Heddle, Mock, binary, clean_environment, wait_for
from scenario import PAGE_ROUTES, Scenario, operations
from server import GRAPHS, ROOT

pytestmark = pytest.mark.beyond_peer("the files are Heddle's")
USED = ("approval", "echo", "failing", "gated", "nested", "settings")


def graphs() -> dict:
    return {name: GRAPHS / f"{name}.json" for name in USED} | {"agent": ROOT / "src/cli/graphs/agent.json"}


@pytest.fixture(scope="module")
def model():
    with Mock() as running:
        yield running


@pytest.fixture(scope="module")
def played(model):
    """The scenario, and the rows that it stores."""
    config = {
        "record": True,
        "outgoing": {"private": "allow"},
        "store": {"index": {"dims": 64, "embed": "openai:any", "fields": ["text"]}},
    }
    env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none"}
    with closed_port() as hook, Heddle(graphs=graphs(), config=config, env=env) as server:
        with server.client(headers={"User-Agent": "golden"}) as http:
            scenario = Scenario(http, Names(), model, hook)
            scenario.play()
            wait_for(
                lambda: webhooks(server) == 1,
                what="the row of the webhook that was delivered to be deleted",
            )
            scenario.routes = operations(http.get("/openapi.json").json())
            # A search updates the index of texts, which otherwise lags a moment behind.
            http.post("/threads/search", json={"text": "tea"}).raise_for_status()
        server.stop()  # no more writes after this
        file = server.folder / "heddle.db"
        scenario.rows, scenario.schema = dump(file, scenario.names), schema(file)
    return scenario


@pytest.fixture(scope="module")
def played_with_auth():
    """The scenario with several users, its rows, and the export of one user."""
    with Heddle(graphs={"settings": GRAPHS / "settings.json"}, config=CONFIG, env=ENVIRONMENT) as server:
        with server.client(headers={"User-Agent": "golden"}) as http:
            scenario = AuthScenario(http, Names(), server)
            for each in http.post("/assistants/search", json={}, headers=scenario.as_user("alice")).json():
                scenario.names.keep(each["assistant_id"])
            scenario.play()
        server.stop()
        scenario.rows = dump(server.folder / "heddle.db", scenario.names)
        scenario.export = export_text(scenario.tool("export", "--all", "--subject", "main/alice"), scenario.names)
    return scenario


def webhooks(server) -> int:
    """Returns the number of webhooks that wait for delivery."""
    database = open_database(server.folder / "heddle.db")
    try:
        return database.execute("SELECT count(*) FROM outbox").fetchone()[0]
    finally:
        database.close()


def test_every_route_is_called(played):
    assert played.routes | PAGE_ROUTES <= played.called, (played.routes | PAGE_ROUTES) - played.called


def test_answers_are_those_of_the_golden_files(played):
    played.compare()


def test_rows_are_those_of_the_golden_file(played):
    compare("rows.txt", played.rows)


def test_the_schema_is_that_of_the_golden_file(played):
    compare("schema.sql", played.schema)


def test_answers_to_several_users_are_those_of_the_golden_file(played_with_auth):
    played_with_auth.compare()


def test_rows_of_several_users_are_those_of_the_golden_file(played_with_auth):
    compare("rows-auth.txt", played_with_auth.rows)


def test_an_export_is_that_of_the_golden_file(played_with_auth):
    compare("export.jsonl", played_with_auth.export)


def test_a_database_of_before_is_read_as_before(tmp_path):
    """The file was stored by schema version 6 and is never rewritten: it keeps its ids and times."""
    file = tmp_path / "heddle.db"
    file.write_bytes(gzip.decompress((FOLDER / "stored-6.db.gz").read_bytes()))
    command = [str(binary()), "export", "--all", "--store", f"sqlite:{file}"]
    done = subprocess.run(command, env=clean_environment(), text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, rest = done.stdout.split("\n", 1)
    compare("stored-6.jsonl", re.sub(r'"created_at":"[^"]+"', '"created_at":"<time>"', first) + "\n" + rest)
