"""One fixed scenario that calls every route of a server without authentication, area by area."""

from __future__ import annotations

import re

import httpx
from gate import Gate
from golden import Recorder, frames
from listener import Listener
from plain import human
from programs import wait_for

NOWHERE = "00000000-0000-4000-8000-0000000000ff"  # does not exist
METHODS = ("get", "post", "put", "patch", "delete")
PAGE_ROUTES = {  # not part of /openapi.json
    ("GET", "/"),
    ("GET", "/assets/{path*}"),
    ("GET", "/icon.svg"),
    ("GET", "/page/settings"),
    ("POST", "/page/token"),
}


def fixed(number: int) -> str:
    """An id that the scenario chooses; the golden files show it unchanged."""
    return f"00000000-0000-4000-8000-{number:012d}"


TALK, ASKED, FAILED, COPIED, GATED, NESTED, SPARE, PRUNED, RECORDED, WEBHOOK, LONG, ROOM, BRANCHED = map(
    fixed, range(1, 14)
)
EDITED = fixed(14)  # a room that is deleted: the numbers of a cascade's events depend on timing
ASSISTANT, OTHER_ASSISTANT = fixed(21), fixed(22)


def say(text: str, identity: str, **more) -> dict:
    return {"input": human(text, identity), **more}


class Scenario(Recorder):
    """`model` is a mock model, `hook` a port on which nothing listens."""

    def __init__(self, http: httpx.Client, names, model, hook: int):
        super().__init__(http, names)
        self.model, self.hook = model, hook

    def play(self) -> None:
        for part in (
            self.assistants,
            self.threads,
            self.runs,
            self.interrupts,
            self.states,
            self.long_values,
            self.branches,
            self.streams,
            self.waiting,
            self.crons,
            self.items,
            self.stateless,
            self.recorded,
            self.sharing,
            self.removals,
            self.rooms,
            self.server,
        ):
            part()

    def refuse(self, area: str, *requests: tuple) -> None:
        for method, path, *rest in requests:
            self.call(area, method, path, **(rest[0] if rest else {}))

    # ---- the server -----------------------------------------------------

    def server(self) -> None:
        area = "server"
        for path in ("/ok", "/health", "/info", "/docs", "/", "/icon.svg", "/page/settings"):
            self.call(area, "GET", path)
        self.metrics(area)
        page = self.http.get("/").text
        asset = re.search(r"assets/([\w.-]+\.js)", page)[1]
        self.names.give(asset, "secret")  # the name contains a hash of the page
        self.call(area, "GET", "/assets/{path*}", ids=[asset])
        self.call(area, "GET", "/assets/{path*}", ids=["nothing.js"])
        self.call(area, "POST", "/page/token", body={"code": "x"})
        self.document("openapi")
        self.refuse(
            area,
            ("GET", "/nothing"),
            ("DELETE", "/ok"),
            ("PUT", "/threads"),
            ("POST", "/threads", {"content": "{"}),
            ("POST", "/threads", {"body": []}),
        )

    def metrics(self, area: str) -> None:
        """Records names and types of the metrics, not their values."""
        for kind in ("text", "json"):
            params = {"format": "json"} if kind == "json" else {}
            answer = self.http.get("/metrics", params=params)
            types = [line for line in answer.text.splitlines() if line.startswith("# TYPE")]
            shown = shape(answer.json()) if kind == "json" else types
            self.keep(
                area,
                "GET /metrics",
                "",
                None,
                {"params": params},
                answer.status_code,
                answer.headers,
                shown,
            )
        self.called.add(("GET", "/metrics"))

    def document(self, area: str) -> None:
        """Records the document without its descriptions."""
        self.called.add(("GET", "/openapi.json"))
        answer = self.http.get("/openapi.json")
        self.keep(
            area,
            "GET /openapi.json",
            "",
            None,
            {},
            answer.status_code,
            answer.headers,
            without_prose(answer.json()),
        )

    # ---- assistants -----------------------------------------------------

    def assistants(self) -> None:
        area = "assistants"
        found = self.http.post("/assistants/search", json={"limit": 100}).json()
        self.names.keep(*(each["assistant_id"] for each in found))  # derived from the names of graphs
        body = {
            "assistant_id": ASSISTANT,
            "graph_id": "settings",
            "name": "first",
            "description": "of the tests",
            "config": {
                "configurable": {"user": "ann", "colour": "red"},
                "recursion_limit": 7,
                "tags": ["a"],
            },
            "metadata": {"team": "red", "size": 1.5, "on": True, "none": None},
        }
        self.ask(area, "POST", "/assistants", body=body)
        self.call(area, "POST", "/assistants", body={**body, "if_exists": "do_nothing"})
        self.call(area, "POST", "/assistants", body=body, note="exists")
        self.call(area, "POST", "/assistants", body={**body, "context": {"mood": "calm"}})
        self.call(area, "POST", "/assistants", body={"graph_id": "nowhere"})
        self.call(
            area,
            "POST",
            "/assistants",
            body={"assistant_id": OTHER_ASSISTANT, "graph_id": "echo", "context": {"mood": "calm"}},
        )
        one = {"ids": [ASSISTANT]}
        self.call(area, "GET", "/assistants/{assistant_id}", **one)
        change = {"name": "second", "metadata": {"team": "blue"}, "description": "Zoë"}
        self.call(area, "PATCH", "/assistants/{assistant_id}", body=change, **one)
        self.call(area, "POST", "/assistants/{assistant_id}/versions", body={}, **one)
        self.call(area, "POST", "/assistants/{assistant_id}/latest", body={"version": 1}, **one)
        self.call(area, "POST", "/assistants/{assistant_id}/latest", body={"version": 9}, **one)
        by_name = {"sort_by": "name", "sort_order": "asc"}
        self.call(area, "POST", "/assistants/search", body={"limit": 3, **by_name})
        self.call(
            area,
            "POST",
            "/assistants/search",
            body={"metadata": {"team": "red"}, "select": ["name"]},
        )
        self.call(area, "POST", "/assistants/search", body={"limit": -1})
        self.call(area, "POST", "/assistants/count", body={"graph_id": "echo"})
        self.call(area, "GET", "/assistants/{assistant_id}/graph", ids=["nested"], params={"xray": "true"})
        self.call(area, "GET", "/assistants/{assistant_id}/graph", ids=["approval"])
        self.call(area, "GET", "/assistants/{assistant_id}/schemas", ids=["approval"])
        self.call(area, "GET", "/assistants/{assistant_id}/subgraphs", ids=["nested"])
        self.call(area, "GET", "/assistants/{assistant_id}/subgraphs/{namespace}", ids=["nested", "child"])
        for path in ("", "/graph", "/schemas", "/subgraphs"):
            self.call(area, "GET", "/assistants/{assistant_id}" + path, ids=[NOWHERE])
        self.refuse(
            area,
            ("GET", "/assistants/{assistant_id}", {"ids": ["no-such-graph"]}),
            ("PATCH", "/assistants/{assistant_id}", {"ids": [NOWHERE], "body": {}}),
            ("POST", "/assistants/{assistant_id}/versions", {"ids": [NOWHERE], "body": {}}),
            (
                "POST",
                "/assistants/{assistant_id}/latest",
                {"ids": [NOWHERE], "body": {"version": 1}},
            ),
            ("POST", "/assistants/count", {"body": {"metadata": 1}}),
        )

    # ---- threads --------------------------------------------------------

    def threads(self) -> None:
        area = "threads"
        talk = {
            "thread_id": TALK,
            "metadata": {"title": 'Tea & cake – "quoted"', "n": 1, "deep": {"list": [1, None]}},
        }
        self.call(area, "POST", "/threads", body=talk)
        self.call(area, "POST", "/threads", body=talk, note="exists")
        self.call(area, "POST", "/threads", body={**talk, "if_exists": "do_nothing"})
        self.call(area, "POST", "/threads", body={"thread_id": "no-id"})
        self.call(
            area,
            "POST",
            "/threads",
            body={"thread_id": SPARE, "ttl": 60, "metadata": {"spare": True}},
        )
        for thread in (ASKED, FAILED, GATED, NESTED, PRUNED, RECORDED, WEBHOOK):
            self.http.post("/threads", json={"thread_id": thread}).raise_for_status()
        self.call(area, "GET", "/threads/{thread_id}", ids=[TALK])
        self.call(area, "GET", "/threads/{thread_id}", ids=[NOWHERE])
        self.call(area, "GET", "/threads/{thread_id}", ids=["no-id"])
        self.call(
            area,
            "PATCH",
            "/threads/{thread_id}",
            ids=[TALK],
            body={"metadata": {"n": 2, "more": "x"}},
        )
        self.call(area, "PATCH", "/threads/{thread_id}", ids=[NOWHERE], body={"metadata": {}})
        self.call(
            area,
            "PATCH",
            "/threads/{thread_id}/state",
            ids=[TALK],
            body={"metadata": {"patched": True}},
        )
        self.call(area, "PATCH", "/threads/{thread_id}/state", ids=[NOWHERE], body={"metadata": {}})
        self.call(area, "POST", "/threads/search", body={"metadata": {"spare": True}})
        self.call(
            area,
            "POST",
            "/threads/search",
            body={"ids": [TALK], "select": ["thread_id", "metadata"]},
        )
        self.call(area, "POST", "/threads/search", body={"status": "nowhere"})
        self.call(area, "POST", "/threads/count", body={"status": "idle"})
        self.call(area, "POST", "/threads/count", body={"metadata": 1})

    # ---- runs -----------------------------------------------------------

    def runs(self) -> None:
        area = "runs"
        modes = [
            "values",
            "updates",
            "messages-tuple",
            "tasks",
            "checkpoints",
            "debug",
            "custom",
            "events",
        ]
        first = {
            "assistant_id": "echo",
            "stream_mode": modes,
            "stream_resumable": True,
            "metadata": {"source_of": "run"},
        }
        first |= say("Hello there", "m1", config={"configurable": {"user": "bob"}, "tags": ["t"]})
        self.call(area, "POST", "/threads/{thread_id}/runs/stream", ids=[TALK], body=first)
        second = {"assistant_id": "echo", **say("How are you?", "m2")}
        self.call(area, "POST", "/threads/{thread_id}/runs/wait", ids=[TALK], body=second)
        third = {"assistant_id": ASSISTANT, "input": {"seen": []}, "durability": "sync"}
        run = self.ask(area, "POST", "/threads/{thread_id}/runs", ids=[SPARE], body=third)["run_id"]
        path = "/threads/{thread_id}/runs/{run_id}"
        self.call(area, "GET", path + "/join", ids=[SPARE, run])
        self.call(area, "GET", path, ids=[SPARE, run])
        self.call(area, "GET", "/threads/{thread_id}/runs", ids=[TALK], params={"limit": 1})
        self.call(area, "GET", "/threads/{thread_id}/runs", ids=[TALK], params={"status": "success"})
        self.call(
            area,
            "POST",
            "/threads/{thread_id}/runs/wait",
            ids=[FAILED],
            body={"assistant_id": "failing", "input": {}},
        )
        self.call(
            area,
            "POST",
            "/threads/{thread_id}/runs/stream",
            ids=[FAILED],
            body={"assistant_id": "failing", "input": {}},
        )
        self.call(area, "GET", "/threads/{thread_id}", ids=[FAILED])
        self.call(area, "GET", "/threads/{thread_id}/runs", ids=[FAILED], params={"select": ["status"]})
        for end in ("", "/stream", "/wait"):
            path = "/threads/{thread_id}/runs" + end
            self.call(area, "POST", path, ids=[TALK], body={"assistant_id": "nowhere"})
            self.call(area, "POST", path, ids=[NOWHERE], body=second)
        self.refuse(
            area,
            ("POST", "/threads/{thread_id}/runs", {"ids": [TALK], "body": {}}),
            (
                "POST",
                "/threads/{thread_id}/runs",
                {"ids": [TALK], "body": {**second, "stream_mode": "nowhere"}},
            ),
            ("GET", "/threads/{thread_id}/runs", {"ids": [NOWHERE]}),
            ("GET", "/threads/{thread_id}/runs", {"ids": [TALK], "params": {"status": "nowhere"}}),
            ("GET", "/threads/{thread_id}/runs/{run_id}", {"ids": [TALK, NOWHERE]}),
            ("GET", "/threads/{thread_id}/runs/{run_id}/join", {"ids": [TALK, NOWHERE]}),
        )

    def interrupts(self) -> None:
        area = "interrupts"
        path, ids = "/threads/{thread_id}/runs/wait", [ASKED]
        self.call(area, "POST", path, ids=ids, body={"assistant_id": "approval", **say("Tea?", "a1")})
        self.call(area, "GET", "/threads/{thread_id}", ids=ids)
        self.call(area, "GET", "/threads/{thread_id}/state", ids=ids)
        resume = {
            "assistant_id": "approval",
            "command": {"resume": "yes"},
            "stream_mode": "updates",
        }
        self.call(area, "POST", "/threads/{thread_id}/runs/stream", ids=ids, body=resume)
        nested = {
            "assistant_id": "nested",
            "input": {**human("in", "n1"), "ask": True},
            "stream_subgraphs": True,
        }
        stream = {**nested, "stream_mode": ["updates", "values"]}
        self.call(area, "POST", "/threads/{thread_id}/runs/stream", ids=[NESTED], body=stream)
        self.call(area, "GET", "/threads/{thread_id}/state", ids=[NESTED], params={"subgraphs": "true"})

    # ---- states ---------------------------------------------------------

    def states(self) -> None:
        area = "states"
        ids = [TALK]
        state = self.ask(area, "GET", "/threads/{thread_id}/state", ids=ids)
        checkpoint = state["checkpoint"]["checkpoint_id"]
        parent = state["parent_checkpoint"]["checkpoint_id"]
        self.call(area, "GET", "/threads/{thread_id}/state/{checkpoint_id}", ids=[TALK, parent])
        self.call(
            area,
            "POST",
            "/threads/{thread_id}/state/checkpoint",
            ids=ids,
            body={"checkpoint": {"checkpoint_id": parent}},
        )
        self.call(area, "GET", "/threads/{thread_id}/history", ids=ids, params={"limit": 2})
        self.call(
            area,
            "POST",
            "/threads/{thread_id}/history",
            ids=ids,
            body={"limit": 1, "before": checkpoint},
        )
        change = {"values": human("changed", "m3"), "as_node": "reply"}
        self.call(area, "POST", "/threads/{thread_id}/state", ids=ids, body=change)
        self.call(area, "GET", "/threads/{thread_id}/timeline", ids=ids)
        self.call(area, "GET", "/threads/{thread_id}/agents", ids=ids)
        self.call(area, "GET", "/threads/{thread_id}/messages", ids=ids)
        self.call(area, "POST", "/threads/{thread_id}/copy", ids=ids)
        copied = self.http.post(f"/threads/{TALK}/copy").json()["thread_id"]
        self.http.delete(f"/threads/{copied}")
        steps = [{"updates": [{"values": human("from outside", "s1"), "as_node": "__start__"}]}]
        body = {"thread_id": COPIED, "supersteps": steps, "metadata": {"graph_id": "echo"}}
        self.call(area, "POST", "/threads", body=body)
        self.call(area, "GET", "/threads/{thread_id}/state", ids=[COPIED])
        for end in ("state", "history", "timeline", "agents", "messages"):
            self.call(area, "GET", "/threads/{thread_id}/" + end, ids=[NOWHERE])
        wrong = {"checkpoint": {"checkpoint_id": NOWHERE}}
        self.refuse(
            area,
            ("POST", "/threads/{thread_id}/state", {"ids": [NOWHERE], "body": change}),
            (
                "POST",
                "/threads/{thread_id}/state",
                {"ids": ids, "body": {"values": {}, "as_node": "nowhere"}},
            ),
            ("GET", "/threads/{thread_id}/state/{checkpoint_id}", {"ids": [TALK, NOWHERE]}),
            ("POST", "/threads/{thread_id}/state/checkpoint", {"ids": ids, "body": wrong}),
            ("POST", "/threads/{thread_id}/history", {"ids": [NOWHERE], "body": {}}),
            ("POST", "/threads/{thread_id}/history", {"ids": ids, "body": {"limit": 0}}),
            ("POST", "/threads/{thread_id}/copy", {"ids": [NOWHERE]}),
        )

    def long_values(self) -> None:
        """Chunked values without random ids, so that the rows show how values are cut."""
        area = "states"
        self.http.post("/threads", json={"thread_id": LONG, "metadata": {"graph_id": "settings"}}).raise_for_status()
        for number in range(6):
            entries = [
                {"number": number * 10 + each, "text": f"entry {each} " * 12, "é": None} for each in range(number + 1)
            ]
            body = {"values": {"seen": entries}, "as_node": "tell"}
            answer = self.http.post(f"/threads/{LONG}/state", json=body)
            assert answer.status_code == 200, answer.text
        self.call(area, "GET", "/threads/{thread_id}/history", ids=[LONG], params={"limit": 2})

    def branches(self) -> None:
        area = "branches"
        ids, path = [TALK], "/threads/{thread_id}/branches"
        history = self.http.post(f"/threads/{TALK}/history", json={"limit": 100}).json()
        fork = history[-3]["checkpoint"]["checkpoint_id"]  # where the first run ended
        body = {"assistant_id": "echo", "checkpoint_id": fork, **say("Hello again", "m4")}
        self.call(area, "POST", "/threads/{thread_id}/runs/wait", ids=ids, body=body)
        found = self.ask(area, "GET", path, ids=ids)["branches"]
        branch = found[1]["branch_id"]
        self.call(area, "PATCH", path + "/{branch_id}", ids=[TALK, branch], body={"name": "the first"})
        self.call(area, "PATCH", path, ids=ids, body={"checkpoint_id": found[1]["head_checkpoint_id"]})
        self.call(area, "GET", "/threads/{thread_id}/messages", ids=ids)
        self.call(area, "DELETE", path + "/{branch_id}", ids=[TALK, found[-1]["branch_id"]])
        self.call(area, "GET", path, ids=ids)
        self.refuse(
            area,
            ("GET", path, {"ids": [NOWHERE]}),
            ("PATCH", path, {"ids": ids, "body": {"checkpoint_id": NOWHERE}}),
            ("PATCH", path + "/{branch_id}", {"ids": [TALK, NOWHERE], "body": {"name": "x"}}),
            ("DELETE", path + "/{branch_id}", {"ids": [TALK, NOWHERE]}),
        )

    # ---- streams --------------------------------------------------------

    def streams(self) -> None:
        area = "streams"
        runs = self.http.get(f"/threads/{TALK}/runs", params={"limit": 100}).json()
        run = runs[-1]["run_id"]
        path = "/threads/{thread_id}/runs/{run_id}/stream"
        again = {"Last-Event-ID": "-1"}
        self.call(area, "GET", path, ids=[TALK, run], headers=again, params={"stream_mode": "values"})
        self.call(area, "GET", path, ids=[TALK, run], note="without Last-Event-ID")
        self.call(
            area,
            "GET",
            "/runs/{run_id}/stream",
            ids=[run],
            headers={"Last-Event-ID": "1"},
            params={"stream_mode": "updates"},
        )
        self.thread_stream(area)
        self.refuse(
            area,
            ("GET", path, {"ids": [TALK, NOWHERE]}),
            ("GET", "/runs/{run_id}/stream", {"ids": [NOWHERE]}),
            ("GET", "/threads/{thread_id}/stream", {"ids": [NOWHERE]}),
            (
                "GET",
                "/threads/{thread_id}/stream",
                {"ids": [TALK], "params": {"stream_mode": "nowhere"}},
            ),
        )

    def thread_stream(self, area: str) -> None:
        """The stream has no end, so it is read up to the end of a run that starts after it is open."""
        url, params = f"/threads/{PRUNED}/stream", {"stream_mode": "run_modes"}
        text = ""
        with self.http.stream("GET", url, params=params) as answer:
            body = {"assistant_id": "echo", "stream_mode": "updates", **say("listen", "p1")}
            self.call(area, "POST", "/threads/{thread_id}/runs/wait", ids=[PRUNED], body=body)
            for piece in answer.iter_text():
                text += piece
                if "event: end\n" in text.replace("\r", "") and text.endswith("\n\n"):
                    break
            self.called.add(("GET", "/threads/{thread_id}/stream"))
            self.keep(
                area,
                f"GET {url}",
                "up to the end of the run",
                None,
                {"params": params},
                answer.status_code,
                answer.headers,
                frames(text),
            )

    # ---- runs that wait ---------------------------------------------------

    def waiting(self) -> None:
        area = "waiting"
        path = "/threads/{thread_id}/runs"
        with Gate() as gate:
            gated = gate.body(durability="sync")
            run = self.ask(area, "POST", path, ids=[GATED], body=gated)["run_id"]
            wait_for(lambda: gate.arrived == 1, what="the run at its gate")
            self.call(area, "GET", "/threads/{thread_id}", ids=[GATED])
            self.call(area, "POST", path, ids=[GATED], body={**gated, "multitask_strategy": "reject"})
            later = self.ask(area, "POST", path, ids=[GATED], body={**gated, "multitask_strategy": "enqueue"})["run_id"]
            self.call(area, "GET", path + "/{run_id}", ids=[GATED, later])
            body = {"thread_id": GATED, "run_ids": [later]}
            self.call(area, "POST", "/runs/cancel", body=body)
            self.call(area, "POST", path + "/{run_id}/cancel", ids=[GATED, run], params={"wait": "true"})
            self.call(area, "GET", path + "/{run_id}", ids=[GATED, run])
        self.call(area, "GET", "/threads/{thread_id}", ids=[GATED])
        after = {"assistant_id": "echo", "after_seconds": 36000, **say("later", "g2")}
        planned = self.ask(area, "POST", path, ids=[GATED], body=after)["run_id"]
        self.call(area, "GET", path + "/{run_id}", ids=[GATED, planned])
        self.call(area, "DELETE", path + "/{run_id}", ids=[GATED, run])
        self.refuse(
            area,
            ("POST", path + "/{run_id}/cancel", {"ids": [GATED, NOWHERE]}),
            ("DELETE", path + "/{run_id}", {"ids": [GATED, NOWHERE]}),
            ("POST", "/runs/cancel", {"body": {}}),
            ("POST", "/runs/cancel", {"body": {"thread_id": GATED, "run_ids": [NOWHERE]}}),
        )

    # ---- crons ----------------------------------------------------------

    def crons(self) -> None:
        area = "crons"
        body = {
            "assistant_id": "echo",
            "schedule": "0 0 1 1 *",
            "timezone": "Europe/Berlin",
            "metadata": {"for": "tests"},
            **say("happy new year", "c1"),
            "config": {"configurable": {"user": "carl"}},
            "on_run_completed": "keep",
        }
        cron = self.ask(area, "POST", "/runs/crons", body=body)["cron_id"]
        other = {
            **body,
            "schedule": "*/5 2 * * 1-5",
            "end_time": "2099-01-01T00:00:00Z",
            "enabled": False,
        }
        self.ask(area, "POST", "/threads/{thread_id}/runs/crons", ids=[SPARE], body=other)
        self.call(area, "PATCH", "/runs/crons/{cron_id}", ids=[cron], body={"metadata": {"more": 1}})
        by_time = {"sort_by": "created_at", "sort_order": "asc"}
        self.call(area, "POST", "/runs/crons/search", body=by_time)
        self.call(area, "POST", "/runs/crons/search", body={"thread_id": SPARE})
        self.call(area, "POST", "/runs/crons/count", body={"assistant_id": "echo"})
        third = self.ask(area, "POST", "/runs/crons", body={**body, "schedule": "0 12 * * *"})
        self.call(area, "DELETE", "/runs/crons/{cron_id}", ids=[third["cron_id"]])
        self.refuse(
            area,
            ("POST", "/runs/crons", {"body": {**body, "schedule": "every day"}}),
            ("POST", "/runs/crons", {"body": {**body, "timezone": "Nowhere/Town"}}),
            ("POST", "/threads/{thread_id}/runs/crons", {"ids": [NOWHERE], "body": body}),
            ("PATCH", "/runs/crons/{cron_id}", {"ids": [NOWHERE], "body": {"enabled": True}}),
            ("DELETE", "/runs/crons/{cron_id}", {"ids": [NOWHERE]}),
            ("POST", "/runs/crons/search", {"body": {"limit": "x"}}),
            ("POST", "/runs/crons/count", {"body": {"assistant_id": 1}}),
        )

    # ---- items ----------------------------------------------------------

    def items(self) -> None:
        area = "items"
        path = "/store/items"
        for key, value, more in (
            ("a", {"text": "cats like milk", "n": 1, "deep": {"é": [1.5, None, "☃"]}}, {}),
            ("b", {"text": "rockets fly to the moon"}, {"ttl": 60}),
            ("c", {"plain": True}, {"index": False}),
        ):
            self.call(
                area,
                "PUT",
                path,
                body={"namespace": ["users", "ann"], "key": key, "value": value, **more},
            )
        self.call(
            area,
            "PUT",
            path,
            body={"namespace": ["users", "bob"], "key": "a", "value": {"text": "moon"}},
        )
        self.call(area, "GET", path, params={"namespace": "users.ann", "key": "a"})
        self.call(area, "GET", path, params={"namespace": "users.ann", "key": "nothing"})
        self.call(
            area,
            "POST",
            path + "/search",
            body={"namespace_prefix": ["users", "ann"], "filter": {"n": {"$gte": 1}}},
        )
        self.call(
            area,
            "POST",
            path + "/search",
            body={"namespace_prefix": ["users"], "query": "moon rockets", "limit": 2},
        )
        self.call(area, "POST", "/store/namespaces", body={"prefix": ["users"], "max_depth": 1})
        self.call(area, "GET", "/store/namespaces", params={"suffix": "ann"})
        self.call(area, "DELETE", path, body={"namespace": ["users", "ann"], "key": "c"})
        self.refuse(
            area,
            ("PUT", path, {"body": {"namespace": [], "key": "a", "value": {}}}),
            ("PUT", path, {"body": {"namespace": ["a.b"], "key": "a", "value": {}}}),
            ("PUT", path, {"body": {"namespace": ["n"], "key": "a", "value": 1}}),
            ("GET", path, {}),
            ("DELETE", path, {"body": {"namespace": ["n"]}}),
            ("POST", path + "/search", {"body": {"namespace_prefix": "users"}}),
            ("POST", "/store/namespaces", {"body": {"max_depth": -1}}),
            ("GET", "/store/namespaces", {"params": {"limit": "x"}}),
        )

    # ---- runs without a thread --------------------------------------------

    def stateless(self) -> None:
        area = "stateless"
        body = {"assistant_id": "echo", **say("no thread", "x1")}
        self.call(area, "POST", "/runs/wait", body=body)
        self.call(area, "POST", "/runs/stream", body={**body, "stream_mode": ["messages", "custom"]})
        run = self.ask(area, "POST", "/runs", body={**body, "on_completion": "keep"})
        self.http.get(f"/threads/{run['thread_id']}/runs/{run['run_id']}/join")
        batch = [
            {**body, "on_completion": "keep"},
            {"assistant_id": ASSISTANT, "input": {}, "on_completion": "keep"},
        ]
        for each in self.ask(area, "POST", "/runs/batch", body=batch):
            self.http.get(f"/threads/{each['thread_id']}/runs/{each['run_id']}/join")
        for path in ("/runs", "/runs/wait", "/runs/stream"):
            self.call(area, "POST", path, body={"assistant_id": "nowhere"})
        self.call(area, "POST", "/runs/batch", body={})
        self.call(area, "POST", "/runs/batch", body=[{}])

    # ---- a model, a webhook -------------------------------------------------

    def recorded(self) -> None:
        area = "agent"
        path = "/threads/{thread_id}/runs/"
        body = {
            "assistant_id": "agent",
            "config": {"configurable": self.model.configurable()},
            "stream_mode": "messages-tuple",
        }
        self.call(
            area,
            "POST",
            path + "stream",
            ids=[RECORDED],
            body={**body, **say("Hello model", "r1"), "stream_resumable": True},
        )
        self.call(area, "POST", path + "wait", ids=[RECORDED], body={**body, **say("fail with 400", "r2")})
        self.call(area, "GET", "/threads/{thread_id}/messages", ids=[RECORDED])
        hook = {
            "assistant_id": "echo",
            "webhook": f"http://127.0.0.1:{self.hook}/undelivered",
            **say("hook", "w1"),
        }
        self.call(area, "POST", path + "wait", ids=[WEBHOOK], body=hook)
        with Listener() as listener:
            hook["webhook"] = f"{listener.url}/hook"
            self.call(area, "POST", path + "wait", ids=[WEBHOOK], body=hook)
            sent = listener.next()
        headers = httpx.Headers(sent["headers"])
        self.keep(
            area,
            "POST /hook",
            "the webhook as it arrives",
            sent["body"],
            {},
            200,
            headers,
            sorted(headers),
        )

    # ---- rooms --------------------------------------------------------------

    def rooms(self) -> None:
        area, room = "rooms", "/threads/{thread_id}/room"
        ids = [ROOM]
        self.http.post("/threads", json={"thread_id": ROOM}).raise_for_status()
        self.call(area, "GET", room, ids=ids)
        settings = {"agents": [{"assistant_id": "echo", "name": "Echo"}], "context": {"messages": 10}}
        self.call(area, "PUT", room, ids=ids, body=settings)
        first = {"id": "m-1", "content": "Hello everybody", "metadata": {"from": "tests"}}
        self.call(area, "POST", room + "/messages", ids=ids, body=first)
        self.call(area, "POST", room + "/messages", ids=ids, body=first, note="again")
        self.call(area, "POST", room + "/messages", ids=ids, body={**first, "content": "other"})
        asked = {"id": "m-2", "content": "What now, @Echo?", "reply_to": "m-1"}
        self.call(area, "POST", room + "/messages/stream", ids=ids, body=asked)
        found = self.ask(area, "GET", room + "/messages", ids=ids)
        answer = found[-1]["id"]
        self.call(area, "GET", room + "/messages", ids=ids, params={"text": "HELLO", "order": "desc", "limit": 1})
        one = room + "/messages/{message_id}"
        self.call(area, "GET", one, ids=[ROOM, "m-2"])
        self.call(area, "GET", one + "/runs", ids=[ROOM, "m-2"])
        self.call(area, "POST", one + "/feedback", ids=[ROOM, answer], body={"rating": "up", "comment": "good"})
        self.call(area, "PUT", room + "/read", ids=ids, body={"seq": 2})
        self.call(area, "POST", room + "/typing", ids=ids)
        self.call(area, "GET", "/mentions")
        self.call(area, "GET", "/threads/{thread_id}", ids=ids)
        self.cascades(area)
        self.question(area)
        self.call(area, "POST", room + "/branch", ids=ids, body={"message_id": "m-1", "thread_id": BRANCHED})
        self.call(area, "POST", room + "/stop", ids=ids)
        self.call(area, "DELETE", one, ids=[ROOM, "m-2"])
        self.call(area, "DELETE", one, ids=[ROOM, "m-1"], params={"purge": "true"})
        self.call(area, "GET", room + "/messages", ids=ids)
        self.refuse(
            area,
            ("GET", room, {"ids": [NOWHERE]}),
            ("PUT", room, {"ids": ids, "body": {"context": {"messages": -1}}}),
            ("POST", room + "/messages", {"ids": ids, "body": {}}),
            ("GET", room + "/messages", {"ids": ids, "params": {"state": "gone"}}),
            ("GET", one, {"ids": [ROOM, "nothing"]}),
            ("DELETE", one, {"ids": [ROOM, "nothing"]}),
            ("POST", one + "/feedback", {"ids": [ROOM, answer], "body": {"rating": "best"}}),
            ("PUT", room + "/read", {"ids": ids, "body": {}}),
            ("GET", "/mentions", {"params": {"before": "x"}}),
        )

    def question(self, area: str) -> None:
        """A question of an agent that ends without a reply."""
        room = "/threads/{thread_id}/room"
        withdraw = room + "/messages/{message_id}/withdraw"
        body = {"id": "m-3", "content": "Shall we?", "mentions": ["approval"]}
        self.call(area, "POST", room + "/messages/stream", ids=[ROOM], body=body)
        question = self.ask(area, "GET", room + "/messages", ids=[ROOM], params={"state": "pending"})[0]["id"]
        self.call(area, "DELETE", room + "/messages/{message_id}", ids=[ROOM, question])
        self.call(area, "POST", withdraw, ids=[ROOM, question])
        self.refuse(area, ("POST", withdraw, {"ids": [ROOM, "m-3"]}))

    def cascades(self, area: str) -> None:
        """An edit whose cascade is undone. Its answers to the edit depend on how far the runs are."""
        one, path = "/threads/{thread_id}/room/messages/{message_id}", "/threads/{thread_id}/cascades"
        edit = {"content": "What then, @Echo?"}
        self.http.post("/threads", json={"thread_id": EDITED}).raise_for_status()
        for identity, content in (("m-1", "Hello everybody"), ("m-2", "What now, @Echo?")):
            body = {"id": identity, "content": content}
            self.http.post(f"/threads/{EDITED}/room/messages/stream", json=body).raise_for_status()
        self.call(area, "PATCH", one, ids=[EDITED, "m-2"], body={**edit, "dry_run": True})
        made = self.http.patch(f"/threads/{EDITED}/room/messages/m-2", json=edit).json()["cascade"]["cascade_id"]
        ids = [EDITED, made]
        url = f"/threads/{EDITED}/cascades/{made}"
        wait_for(lambda: self.http.get(url).json()["status"] == "done", what="the end of the cascade")
        self.call(area, "GET", path, ids=[EDITED])
        self.call(area, "GET", path + "/{cascade_id}", ids=ids)
        self.call(area, "POST", path + "/{cascade_id}", ids=ids, body={"action": "approve"}, note="it is done")
        self.call(area, "POST", path + "/{cascade_id}", ids=ids, body={"action": "undo"})
        answer = self.http.get(f"/threads/{EDITED}/room/messages").json()[2]["id"]
        self.call(area, "POST", one + "/retry", ids=[EDITED, answer], body={"dry_run": True})
        self.refuse(
            area,
            ("PATCH", one, {"ids": [EDITED, "nothing"], "body": edit}),
            ("POST", one + "/retry", {"ids": [EDITED, "m-2"], "body": {}}),
            ("GET", path + "/{cascade_id}", {"ids": [EDITED, NOWHERE]}),
            ("POST", path + "/{cascade_id}", {"ids": [EDITED, NOWHERE], "body": {"action": "undo"}}),
        )
        self.http.delete(f"/threads/{EDITED}").raise_for_status()

    # ---- others -----------------------------------------------------------

    def sharing(self) -> None:
        """Without authentication there are no users to share with."""
        area = "sharing"
        thread = "/threads/{thread_id}"
        self.refuse(
            area,
            ("GET", thread + "/participants", {"ids": [TALK]}),
            (
                "POST",
                thread + "/participants",
                {"ids": [TALK], "body": {"issuer": "main", "subject": "bob", "role": "viewer"}},
            ),
            (
                "PATCH",
                thread + "/participants/{participant_id}",
                {"ids": [TALK, "A" * 22], "body": {"role": "viewer"}},
            ),
            ("DELETE", thread + "/participants/{participant_id}", {"ids": [TALK, "A" * 22]}),
            ("GET", thread + "/invitations", {"ids": [TALK]}),
            ("POST", thread + "/invitations", {"ids": [TALK], "body": {"role": "viewer"}}),
            ("DELETE", thread + "/invitations/{invitation_id}", {"ids": [TALK, NOWHERE]}),
            ("POST", "/invitations/accept", {"body": {"token": "x" * 43}}),
        )

    def removals(self) -> None:
        area = "removals"
        copied = {"ids": [COPIED]}
        agent = {"ids": [COPIED, "echo"]}
        self.call(area, "DELETE", "/threads/{thread_id}/agents/{assistant_id}", **agent)
        self.call(area, "DELETE", "/threads/{thread_id}/agents/{assistant_id}", **agent)
        self.call(area, "GET", "/threads/{thread_id}/agents", **copied)
        self.call(area, "DELETE", "/threads/{thread_id}", **copied)
        self.call(area, "DELETE", "/threads/{thread_id}", **copied)
        keep = {"thread_ids": [PRUNED], "strategy": "keep_latest"}
        self.call(area, "POST", "/threads/prune", body=keep)
        self.call(area, "POST", "/threads/prune", body={"thread_ids": [NOWHERE], "strategy": "delete"})
        self.call(area, "POST", "/threads/prune", body={"thread_ids": [PRUNED], "strategy": "nowhere"})
        self.call(area, "GET", "/threads/{thread_id}/history", ids=[PRUNED])
        self.call(area, "DELETE", "/assistants/{assistant_id}", ids=[OTHER_ASSISTANT])
        self.call(area, "DELETE", "/assistants/{assistant_id}", ids=[OTHER_ASSISTANT])
        found = {"text": "tea", "select": ["thread_id", "label"]}
        self.call(area, "POST", "/threads/search", body=found, note="updates the index of texts")
        by_id = {"sort_by": "thread_id", "sort_order": "asc", "limit": 3, "offset": 1}
        self.call(area, "POST", "/threads/search", body=by_id)


def operations(document: dict) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, item in document["paths"].items() for method in item if method in METHODS}


def shape(value):
    """Replaces values by their types."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def without_prose(value):
    if isinstance(value, dict):
        prose = ("description", "summary", "title")
        return {
            name: without_prose(each) for name, each in value.items() if name not in prose or not isinstance(each, str)
        }
    return [without_prose(each) for each in value] if isinstance(value, list) else value


__all__ = ["PAGE_ROUTES", "Scenario", "operations"]
