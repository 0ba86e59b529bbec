"""/ok, /health, /info, /metrics, /openapi.json, /docs."""

import json
import re
import sqlite3

import httpx
import pytest
from load import comes_to_rest
from plain import Thread
from server import GRAPHS, Server
from table import refused

pytestmark = pytest.mark.beyond_peer("has no such endpoints")
SAMPLE = re.compile(r'([a-z_]+)(\{class="\dxx"\})? (-?[0-9.]+(?:e[+-][0-9]+)?)')


# ---- health


@pytest.mark.parametrize("params", [{}, {"check_db": "0"}, {"check_db": "1"}, {"check_db": "true"}, {"check_db": ""}])
def test_ok(http, params):
    answer = http.get("/ok", params=params)
    assert answer.status_code == 200 and answer.json() == {"ok": True}


def test_ok_with_invalid_parameters(http):
    refused(http, "GET", "/ok", 422, "check_db", params={"check_db": "perhaps"})
    refused(http, "POST", "/ok", 405)


def test_health(http):
    assert http.get("/health").json() == {"status": "ok"}
    assert http.head("/health").status_code == 200 and http.head("/health").content == b""


def test_a_database_that_does_not_answer(own_server):
    """The database file is damaged while the server runs."""
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        assert http.get("/ok?check_db=1").status_code == 200
        with sqlite3.connect(own_server.folder / "heddle.db") as database:
            database.execute("DROP TABLE assistants")
        refused(http, "GET", "/ok", 500, "the database does not respond", params={"check_db": "1"})
        refused(http, "GET", "/health", 503, "the database does not respond")
        assert http.get("/ok").json() == {"ok": True}  # the server itself is healthy


# ---- info


def test_info(http, server):
    info = http.get("/info").json()
    assert info["name"] == "heddle" and re.fullmatch(r"\d+\.\d+\.\d+.*", info["version"])
    assert info["flags"]["assistants"] is True and info["flags"]["crons"] is True
    assert sorted(info["graphs"]) == sorted(server.graphs) and info["store"] == "sqlite"
    assert isinstance(info["uptime_seconds"], int) and info["uptime_seconds"] >= 0
    assert str(server.folder) not in json.dumps(info)  # only the kind of the database


# ---- metrics


def read_metrics(http) -> dict[str, float]:
    answer = http.get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found, described = {}, set()
    for line in answer.text.splitlines():
        if line.startswith("# "):
            described.add(line.split()[2])
            continue
        name, label, value = SAMPLE.fullmatch(line).groups()
        assert name in described
        found[name + (label or "")] = float(value)
    return found


def test_metrics_count(http, server):
    comes_to_rest(server)  # runs of other tests have ended
    before = read_metrics(http)
    thread = Thread(http)
    thread.say("echo", "hello")
    thread.run_failed = http.post(thread.path("/runs/wait"), json={"assistant_id": "failing", "input": {}})
    http.get("/threads/not-a-uuid")
    after = read_metrics(http)
    assert set(before) == set(after)
    for name, grown in (
        ("heddle_runs_ended_total", 2),
        ("heddle_runs_failed_total", 1),
        ("heddle_http_requests_total", 5),
        ('heddle_http_responses_total{class="2xx"}', 4),
        ('heddle_http_responses_total{class="4xx"}', 1),
    ):
        assert after[name] - before[name] >= grown, name
    assert after["heddle_runs_running"] == after["heddle_runs_pending"] == 0
    assert after["heddle_http_received_bytes_total"] > before["heddle_http_received_bytes_total"]
    assert after["heddle_http_sent_bytes_total"] > before["heddle_http_sent_bytes_total"]
    assert after["process_resident_memory_bytes"] > 1 << 20 and after["process_cpu_seconds_total"] > 0


def test_metrics_show_active_runs(http, server):
    comes_to_rest(server)
    thread = Thread(http)
    runs = [
        thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
        for _ in range(3)
    ]
    now = read_metrics(http)
    assert now["heddle_runs_running"] + now["heddle_runs_pending"] == 3
    for run in reversed(runs):
        thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel?wait=1"))
    now = read_metrics(http)
    assert now["heddle_runs_running"] == now["heddle_runs_pending"] == 0


def test_metrics_as_json(http):
    found = http.get("/metrics", params={"format": "json"}).json()
    names = {name.partition("{")[0] for name in read_metrics(http)}
    assert set(found) == names and set(found["heddle_http_responses_total"]) == {f"{n}xx" for n in range(1, 6)}
    refused(http, "GET", "/metrics", 422, "format", params={"format": "xml"})


def test_metrics_can_be_turned_off():
    with Server(graphs={"echo": GRAPHS / "echo.json"}, options=["--metrics=false"]) as server:
        assert httpx.get(server.url + "/metrics", timeout=60).json() == {"detail": "Not Found"}


# ---- the document


@pytest.fixture(scope="module")
def document(server):
    return httpx.get(server.url + "/openapi.json", timeout=60).json()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_everything_is_described(document):
    assert document["openapi"] == "3.1.0" and document["info"]["title"] == "Heddle"
    assert len(document["paths"]) > 40
    tags = {tag["name"] for tag in document["tags"]}
    seen = set()
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"] and set(operation["tags"]) <= tags, where
        assert operation["operationId"] not in seen, where
        seen.add(operation["operationId"])
        for parameter in operation["parameters"]:
            assert parameter["description"] and parameter["schema"], f"{where} {parameter['name']}"
        in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path), where
        assert any(status.startswith("2") for status in operation["responses"]), where


def test_every_reference_leads_somewhere(document):
    text = json.dumps(document)
    for reference in set(re.findall(r'"#/([^"]+)"', text)):
        at = document
        for key in reference.split("/"):
            assert key in at, reference
            at = at[key]
    used = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert used == set(document["components"]["schemas"])


def test_every_path_exists(http, document):
    """The router has every path of the document: none responds with 404 Not Found or 405."""
    for path, method, _ in operations(document):
        if path.endswith("/stream") and method == "get":
            continue  # endless
        answer = http.request(method, re.sub(r"\{\w+\}", "00000000-0000-0000-0000-000000000000", path), content=b"x")
        assert answer.status_code != 405 and answer.text != '{"detail":"Not Found"}', f"{method} {path}"
        assert answer.status_code < 500, f"{method} {path}"


# ---- the page


def test_the_page_loads_no_other_host(http):
    answer = http.get("/docs")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert not re.search(r"(https?:)?//[a-z]+\.", answer.text)
    assert '"openapi.json"' in answer.text
