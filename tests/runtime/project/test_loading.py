"""Graphs of both languages that fail to load, and graphs that get the SDK's logger at import."""

from __future__ import annotations

import threading

import pytest

PYTHON = """
import pathlib, time
while not pathlib.Path(__file__).with_name("go").exists():
    time.sleep(0.02)
raise KeyError("NO_SUCH_KEY")
"""

JS = """
import { existsSync } from "node:fs";
while (!existsSync(new URL("./go", import.meta.url))) await new Promise((resolve) => setTimeout(resolve, 20));
throw new RangeError("NO_SUCH_KEY");
"""

LOGGER = """
import { getLogger } from "@langchain/langgraph-sdk/logging";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
const logger = getLogger();
logger.info("the file is loaded", { answer: 42 });
const State = Annotation.Root({ n: Annotation<number> });
const count = ({ n }: { n: number }) => {
  getLogger().warn("counting").error(new Error("no error at all"));
  logger.silly("not written");
  return { n: n + 1 };
};
export const graph = new StateGraph(State).addNode("count", count).addEdge(START, "count").compile();
"""

CASES = {"python": ("slow.py", PYTHON, "KeyError: 'NO_SUCH_KEY'"), "js": ("slow.mjs", JS, "RangeError: NO_SUCH_KEY")}


@pytest.mark.parametrize("language", CASES)
def test_a_graph_that_failed_to_load_answers_with_the_load_error(project, language):
    name, text, reason = CASES[language]
    server = project(config={"graphs": {"slow": f"./{name}:graph"}}, files={name: text})
    said = {}
    # A run and a request that arrived while the worker was still loading.
    early = [
        threading.Thread(target=lambda: said.update(run=server.wait("slow", {}))),
        threading.Thread(target=lambda: said.update(drawn=server.ask("GET", "/assistants/slow/graph", status=422))),
    ]
    for each in early:
        each.start()
    server.ready(language)
    (server.project / "go").touch()
    for each in early:
        each.join()
    assert "NO_SUCH_KEY" in said["run"]["__error__"]["message"], said
    assert "no graph" not in str(said)
    expected = {"detail": f'graph "slow" cannot be loaded: {reason}'}
    assert reason in said["drawn"]["detail"]

    # 422: clients of both SDKs retry a 5xx.
    thread = server.thread(metadata={"graph_id": "slow"})
    for path in ("graph", "schemas", "subgraphs"):
        assert server.ask("GET", f"/assistants/slow/{path}", status=422) == expected
    assert server.ask("POST", f"/threads/{thread}/state", status=422, json={"values": {"n": 1}}) == expected
    assert "NO_SUCH_KEY" in server.wait("slow", {}, thread)["__error__"]["message"]


def test_a_typescript_graph_gets_the_logger_of_the_sdk(project):
    server = project(config={"graphs": {"counting": "./counting.ts:graph"}}, files={"counting.ts": LOGGER})
    assert server.wait("counting", {"n": 1}) == {"n": 2}
    log = server.log.read_text()
    assert 'info: the file is loaded {"answer":42}' in log
    assert 'warn: counting {"langgraph_node":"count"}' in log
    assert "error: Error: no error at all" in log
    assert "not written" not in log
