"""The graph `research_agent`: two rounds, parallel workers, reviews, refusals, restarts."""

from __future__ import annotations

import json
import threading

import pytest
from plain import human
from programs import wait_for
from weather import Weather

CITIES = ["Bern", "Lima", "Oslo", "Rome", "Suva"]
# The prompt by which the model recognizes each node.
PLAN1, PLAN2 = "You plan research", "You plan the second round"
WORK = "You are one of several researchers"
GATHER1, GATHER2 = "You bring together", "You write the result of two rounds"


def tasks(*names: str) -> str:
    listed = [
        {"task_id": f"t{n}", "description": f"find out about {name}", "search_focus": name, "constraints": {}}
        for n, name in enumerate(names)
    ]
    return json.dumps({"reasoning": "because", "tasks": listed})


def results(*titles: str) -> list[dict]:
    return [
        {"title": title, "summary": f"about {title}", "source_url": "https://example.com", "relevance_score": 0.9,
         "metadata": {}}
        for title in titles
    ]  # fmt: skip


def reply(system: str, text, **when) -> dict:
    text = text if isinstance(text, str) else json.dumps(text)
    return {"when": {"system": system, **when}, "content": text}


def workers() -> list[dict]:
    """Each worker gets the weather of its city once and reports it."""
    return [
        rule
        for city in CITIES
        for rule in (
            {"when": {"system": WORK, "user": f"find out about {city}", "tool_results": False},
             "tool_calls": [{"name": "weather", "args": {"city": city}}]},
            reply(WORK, results(f"{city}: {{{{results}}}}"), user=f"find out about {city}", tool_results=True),
        )
    ]  # fmt: skip


SCRIPT = {
    "rules": [
        reply(PLAN1, "My plan:\n```json\n" + tasks("Oslo", "Rome") + "\n```", contains="only two"),
        reply(PLAN1, tasks(*CITIES)),
        reply(PLAN2, "Here it is: " + tasks("Bern", "Lima") + " Good luck!"),
        *workers(),
        reply(GATHER1, results("first round")),
        reply(GATHER2, {"summary": "shorter", "results": results("again")}, contains="too long"),
        reply(GATHER2, {"summary": "all is known", "results": results("one", "two")}),
    ]
}


@pytest.fixture
def world(heddle, mock, scripted):
    class World:
        def __init__(self, script=SCRIPT, crowd=1):
            self.model, self.server, self.weather = mock(script), heddle(), Weather(scripted, crowd)
            self.thread = self.server.thread()

        def run(self, given=None, configurable=None, **body):
            configurable = self.model.configurable(http_tools=[self.weather.tool], **(configurable or {}))
            return self.server.wait("research_agent", given, self.thread, configurable, **body)

        def answer(self, value, **configurable):
            return self.run(command={"resume": value}, configurable=configurable)

        def asked(self, system: str) -> list[str]:
            """Returns the last message of each request that this node sent to the model."""
            bodies = [entry["body"]["messages"] for entry in self.model.requests()]
            return [messages[-1]["content"] for messages in bodies if system in messages[0]["content"]]

    return World


def question(values: dict) -> dict:
    [interrupt] = values["__interrupt__"]
    return interrupt["value"]


def test_two_rounds_with_five_workers_at_once(world):
    # The tool responds when five calls wait for it; in the second round, when two do.
    w = world(crowd=5)
    values = w.run(human("What is the weather?"))
    first = question(values)
    assert first == {
        "type": "review_results", "phase": "phase1", "result_count": 1, "results": results("first round"),
        "message": first["message"],
    }  # fmt: skip
    assert w.weather.cities == CITIES
    found = [result["title"] for result in values["worker_results"]]
    assert found == [f"{city}: sunny in {city}" for city in CITIES]
    assert values["user_input"] == "What is the weather?" and values["current_phase"] == "phase1"
    assert all(f"sunny in {city}" in w.asked(GATHER1)[0] for city in CITIES)

    w.weather.barrier = threading.Barrier(2)
    values = w.answer({"approved": True})
    second = question(values)
    assert second == {
        "type": "review_results", "phase": "phase2", "result_count": 2, "results": results("one", "two"),
        "message": second["message"], "summary": "all is known",
    }  # fmt: skip
    # The second round sees the approved results of the first, but only its own workers' results.
    assert [result["title"] for result in values["worker_results"]] == ["Bern: sunny in Bern", "Lima: sunny in Lima"]
    assert "first round" in w.asked(PLAN2)[0] and "What is the weather?" in w.asked(PLAN2)[0]
    assert "Oslo" not in w.asked(GATHER2)[0]

    values = w.answer({"approved": True})
    assert "__interrupt__" not in values
    assert values["final_results"] == results("one", "two") and values["final_summary"] == "all is known"
    assert [message["content"] for message in values["messages"]] == ["What is the weather?", "all is known"]


def test_a_refusal_in_each_round(world):
    w = world()
    w.run(human("What is the weather?"))
    values = w.answer({"approved": False, "feedback": "only two, please"})
    assert question(values)["phase"] == "phase1"
    assert "only two, please" in w.asked(PLAN1)[1]
    assert [task["search_focus"] for task in values["task_list"]] == ["Oslo", "Rome"]
    assert [result["title"] for result in values["worker_results"]] == ["Oslo: sunny in Oslo", "Rome: sunny in Rome"]
    assert len(w.asked(GATHER1)) == 2 and "Bern" not in w.asked(GATHER1)[1]

    values = w.answer({"approved": True})
    assert "only two" not in w.asked(PLAN2)[0], "what was said of the first round is over"
    values = w.answer({"approved": False, "feedback": "too long"})
    again = question(values)
    assert (again["phase"], again["summary"], again["results"]) == ("phase2", "shorter", results("again"))
    assert len(w.asked(PLAN2)) == 1 and len(w.asked(GATHER2)) == 2, "a refusal goes back to the aggregator alone"
    assert "sunny in Lima" in w.asked(GATHER2)[1]
    values = w.answer({"approved": True})
    assert values["final_summary"] == "shorter" and values["messages"][-1]["content"] == "shorter"


def test_reviews_are_answered_after_a_crash(world):
    w = world()
    first = question(w.run(human("What is the weather?")))
    asked = len(w.model.requests())
    w.server.kill()
    w.server.restart()
    state = w.server.state(w.thread)
    assert state["tasks"][0]["interrupts"][0]["value"] == first and state["next"] == ["review_phase1"]
    second = question(w.answer({"approved": True}))
    assert len(w.model.requests()) == asked + 1 + 4 + 1, "nothing of the first round is done again"
    w.server.kill()
    w.server.restart()
    assert w.server.state(w.thread)["tasks"][0]["interrupts"][0]["value"] == second
    assert w.answer({"approved": True})["final_summary"] == "all is known"


def test_without_reviews_it_runs_through(world):
    w = world()
    values = w.run(human("What is the weather?"), {"auto_approve_phase1": True, "autoApprovePhase2": True})
    assert values["messages"][-1]["content"] == "all is known" and values["final_results"] == results("one", "two")


@pytest.mark.parametrize("given", [{"input": "What is it?"}, "What is it?", {"messages": ["before", "What is it?"]}])
def test_the_question_is_the_last_human_message(world, given):
    w = world()
    assert w.run(given)["user_input"] == "What is it?"
    assert "What is it?" in w.asked(PLAN1)[0]


def test_a_new_question_restarts_the_plan(world):
    w = world()
    configurable = {"auto_approve_phase1": True, "auto_approve_phase2": True}
    w.run(human("What is the weather?"), configurable)
    values = w.run(human("only two: what is it now?"), configurable)
    assert values["user_input"] == "only two: what is it now?"
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "human", "ai"]
    assert "sunny in Oslo" in w.asked(GATHER1)[1] and "sunny in Suva" not in w.asked(GATHER1)[1]


def test_models_that_return_no_json(world):
    text = "x" * 3000
    w = world({"rules": [reply(WORK, text), {"content": "I cannot plan."}]})
    values = w.run(human("Why?"), {"auto_approve_phase1": True})
    assert values["task_list"] == [{"task_id": "task_1", "description": "Why?", "search_focus": "", "constraints": {}}]
    [result] = values["phase1_results"]
    assert result == {
        "title": "Why?", "summary": text[:2000], "source_url": "", "relevance_score": 0.5,
        "metadata": {"task_id": "task_1"},
    }  # fmt: skip
    assert question(values)["summary"] == "I cannot plan."


def test_the_newest_list_of_a_worker_counts(world):
    rules = [
        reply(PLAN1, tasks("Oslo")),
        {"when": {"system": WORK, "tool_results": False}, "content": json.dumps(results("old")),
         "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]},
        reply(WORK, "Found:\n" + json.dumps({"results": results("new")})),
        {"content": "no list"},
    ]  # fmt: skip
    w = world({"rules": rules})
    assert [result["title"] for result in w.run(human("Why?"))["worker_results"]] == ["new"]


def test_a_worker_that_fails_is_a_result_of_its_own(world):
    rules = [
        reply(PLAN1, tasks("Oslo", "Rome")),
        {"when": {"system": WORK, "user": "about Rome"}, "error": {"status": 400, "message": "no such thing"}},
        reply(WORK, results("fine")),
        {"content": "no list"},
    ]
    w = world({"rules": rules})
    good, bad = w.run(human("Why?"))["worker_results"]
    assert good == results("fine")[0]
    assert bad["title"] == "find out about Rome" and "no such thing" in bad["summary"]
    assert bad["relevance_score"] == 0 and bad["metadata"]["task_id"] == "t1" and bad["metadata"]["error"]


@pytest.mark.parametrize("limit,calls", [(3, 2), (1, 1)])
def test_a_worker_that_never_ends_is_stopped(world, limit, calls):
    rules = [
        reply(PLAN1, tasks("Oslo")),
        {"when": {"system": WORK}, "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]},
        {"content": "no list"},
    ]
    w = world({"rules": rules})
    [result] = w.run(human("Why?"), {"max_worker_iterations": limit})["worker_results"]
    assert "Recursion limit" in result["summary"] and result["metadata"]["error"] == "GraphRecursionError"
    assert len(w.asked(WORK)) == calls


def test_workers_are_seen_as_subgraphs(world):
    w = world()
    configurable = w.model.configurable(http_tools=[w.weather.tool])
    stream = w.server.stream("research_agent", human("Why?"), w.thread, configurable, stream_mode="updates",
                             stream_subgraphs=True)  # fmt: skip
    spaces = {event.split("|", 1)[1] for event, _, _ in stream if event.startswith("updates|worker_phase1:")}
    assert len(spaces) == 5


def test_the_schemas_name_the_fields(heddle):
    fields = heddle().ask("GET", "/assistants/research_agent/schemas")["config_schema"]["properties"]
    defaults = {name: fields[name]["default"] for name in (
        "model_name", "temperature", "max_tokens", "system_prompt", "max_worker_iterations", "auto_approve_phase1",
        "auto_approve_phase2",
    )}  # fmt: skip
    assert defaults == {
        "model_name": "openai:gpt-4o-mini", "temperature": 0, "max_tokens": None, "system_prompt": None,
        "max_worker_iterations": 15, "auto_approve_phase1": False, "auto_approve_phase2": False,
    }  # fmt: skip


def test_a_crash_in_the_middle_of_a_round(world):
    """Finished workers are not repeated; the running one starts again."""
    hangs = {"when": {"system": WORK, "user": "find out about Oslo"}, "times": 1, "hang": True}
    w = world({"rules": [hangs, *SCRIPT["rules"]]})
    body = {
        "assistant_id": "research_agent", "input": human("What is the weather?"),
        "config": {"configurable": {"base_url": w.model.base_url, "custom_model_name": "mock", "http_tools": [w.weather.tool]}},
    }  # fmt: skip
    w.server.ask("POST", f"/threads/{w.thread}/runs", json=body)

    def four_are_done():
        tasks = w.server.state(w.thread)["tasks"]
        done = sum(bool(task.get("result")) for task in tasks)
        return len(tasks) == 5 and done == 4 and len(w.asked(WORK)) == 4 * 2 + 1

    wait_for(four_are_done, what="four workers to be done and one at work")
    w.server.kill()
    w.server.restart()
    wait_for(lambda: w.server.ask("GET", f"/threads/{w.thread}")["status"] == "interrupted", what="the review")
    assert len(w.asked(WORK)) == 4 * 2 + 1 + 2 and len(w.asked(PLAN1)) == 1
    values = w.server.state(w.thread)["values"]
    assert [result["title"] for result in values["worker_results"]] == [f"{city}: sunny in {city}" for city in CITIES]
    assert question(w.answer({"approved": True}))["phase"] == "phase2"
