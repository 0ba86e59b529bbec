"""--record stores the exchanges of runs with other servers; `heddle replay` repeats the runs from
them."""

from __future__ import annotations

import json
import subprocess

import pytest
from programs import binary, clean_environment

SCRIPT = {
    "rules": [
        {
            "when": {"user": "weather", "tool_results": False},
            "tool_calls": [{"name": "weather", "args": {"city": "Bonn"}}],
        },
        {"when": {"user": "weather", "tool_results": True}, "content": "It is {{results}}."},
        {"when": {"contains": "break"}, "error": {"status": 400, "message": "not that"}},
        {"content": "I heard {{last}}"},
    ]
}


def tools(server) -> list[dict]:
    return [{
        "name": "weather", "description": "the weather", "url": f"{server.url}/weather?city={{city}}", "method": "GET",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }]  # fmt: skip


def sunny(peer, _request) -> None:
    peer.answer(200, "sunny", content_type="text/plain")


def replay(server, thread: str, *more: str) -> tuple[int, str]:
    command = [str(binary()), "replay", thread, "--store", f"sqlite:{server.folder}/heddle.db", *more]
    done = subprocess.run(command, env=clean_environment(), text=True, capture_output=True, timeout=120)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def recorded(heddle, mock):
    """A server that records, a model, and a thread with two runs; the model is stopped."""
    model = mock(SCRIPT)
    server = heddle(config={"record": True})
    thread = server.thread()
    for text in ("hello", "and again"):
        values = server.wait("agent", {"messages": [{"role": "user", "content": text}]}, thread, model.configurable())
        assert values["messages"][-1]["content"] == f"I heard {text}"
    return server, model, thread


def test_the_same_without_a_network(recorded):
    server, model, thread = recorded
    asked = len(model.requests())
    model.stop()
    server.stop()
    status, text = replay(server, thread)
    assert status == 0, text
    assert text.count("1 exchanges, success: the same") == 2
    assert text.endswith("2 runs, 0 differ\n")
    assert asked == 2


def test_it_also_works_beside_the_server(recorded):
    server, _, thread = recorded
    before = server.state(thread)
    assert replay(server, thread)[0] == 0
    assert server.state(thread) == before


def test_another_prompt_shows_the_differing_request(recorded, tmp_path):
    server, _, thread = recorded
    graph = {
        "name": "agent", "state": {"messages": {"reducer": "messages"}},
        "nodes": {
            "model": {"kind": "model", "prompt": "Answer in rhymes."},
            "sign": {"kind": "set", "update": {"messages": [{"@ai": "signed"}]}},
        },
        "edges": [["__start__", "model"], ["model", "sign"]],
    }  # fmt: skip
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(graph))
    status, text = replay(server, thread, "--graph", f"agent={file}")
    assert status == 1
    assert "the request differs at .messages[0].content" in text
    assert "differs" in text and "2 runs, 2 differ" in text


def test_another_request_is_a_difference_even_when_the_states_are_the_same(recorded, tmp_path):
    server, _, thread = recorded
    graph = {
        "name": "agent", "state": {"messages": {"reducer": "messages"}},
        "nodes": {"model": {"kind": "model", "prompt": "Answer in rhymes."}},
        "edges": [["__start__", "model"]],
    }  # fmt: skip
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(graph))
    status, text = replay(server, thread, "--graph", f"agent={file}")
    assert "the request differs at .messages[0].content" in text
    assert "step" not in text.replace(" steps,", ""), text
    assert status == 1 and "2 runs, 2 differ" in text, text


def test_tools_errors_and_answers(heddle, mock, scripted):
    model, weather = mock(SCRIPT), scripted(sunny)
    server = heddle(config={"record": True})
    thread = server.thread()
    configurable = model.configurable(http_tools=tools(weather), approval=["weather"])

    def say(text: str):
        return server.wait("agent", {"messages": [{"role": "user", "content": text}]}, thread, configurable)

    asked = say("the weather, please")
    assert asked["__interrupt__"][0]["value"]["action_request"] == {"action": "weather", "args": {"city": "Bonn"}}
    done = server.wait("agent", None, thread, configurable, command={"resume": {"type": "accept"}})
    assert done["messages"][-1]["content"] == "It is sunny."
    assert "not that" in json.dumps(say("now break"))
    server.ask(
        "POST", f"/threads/{thread}/state", json={"values": {"messages": [{"role": "user", "content": "edited"}]}}
    )
    say("once more")
    model.stop()
    server.stop()
    status, text = replay(server, thread)
    assert status == 0, text
    assert "continues from a state that was updated manually" in text
    assert "4 runs, 0 differ" in text


def test_keys_are_not_in_the_recording(recorded):
    server, _, _ = recorded
    rows = subprocess.run(
        ["python3", "-c", "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
         "'select count(*), sum(instr(data, ?)) from exchanges', (b'sk-mock',)).fetchone())", f"{server.folder}/heddle.db"],
        text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert rows.strip() == "(2, 0)"


def test_an_unknown_thread(recorded):
    server, _, _ = recorded
    command = [str(binary()), "replay", "nowhere", "--store", f"sqlite:{server.folder}/heddle.db"]
    done = subprocess.run(command, env=clean_environment(), text=True, capture_output=True, timeout=120)
    assert done.returncode == 1
    assert "thread nowhere not found" in done.stderr


def test_deleting_the_thread_deletes_its_recording(recorded):
    server, _, thread = recorded
    server.ask("DELETE", f"/threads/{thread}", status=204)
    count = subprocess.run(
        ["python3", "-c", "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from exchanges')"
         ".fetchone()[0])", f"{server.folder}/heddle.db"], text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert count.strip() == "0"
