"""Hooks of schemathesis: requests that are made up know a few things that exist.

Ids that the server has answered are used again, now and then, so that more than refusals is
tried; graphs are called by their names; and nothing is asked to wait for days.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict, deque

import schemathesis

GRAPHS = os.environ["HEDDLE_FUZZ_GRAPHS"].split(",")
SECONDS = 0.05  # the longest delay that a run may ask for
chance = random.Random(int(os.environ["HEDDLE_FUZZ_SEED"]))
seen: dict[str, deque] = defaultdict(lambda: deque(maxlen=20))
KINDS = ("thread_id", "run_id", "assistant_id", "checkpoint_id", "cron_id", "head")


def note(value) -> None:
    """Keeps the ids in an answer."""
    if isinstance(value, list):
        for each in value[:20]:
            note(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in KINDS and isinstance(each, str):
                seen["checkpoint_id" if key == "head" else key].append(each)
            else:
                note(each)


def known(key: str):
    return chance.choice(list(seen[key])) if seen[key] else None


def replace(place, key: str) -> None:
    """Puts something that exists where something made up is."""
    if key in ("assistant_id", "graph_id") and chance.random() < 0.6:
        place[key] = chance.choice(GRAPHS)
    elif chance.random() < 0.7 and known(key):
        place[key] = known(key)


def mend(body) -> None:
    """Only what is of the right type: what is wrong is meant to be."""
    if not isinstance(body, dict):
        return
    for key in ("assistant_id", "graph_id", "thread_id", "checkpoint_id"):
        if isinstance(body.get(key), str):
            replace(body, key)
    if isinstance(body.get("checkpoint"), dict):
        mend(body["checkpoint"])
    delay = body.get("after_seconds")
    if isinstance(delay, (int, float)) and not isinstance(delay, bool) and delay > SECONDS:
        body["after_seconds"] = SECONDS
    # A webhook would be a request to somebody else.
    if isinstance(body.get("webhook"), str) and ":" in body["webhook"]:
        body["webhook"] = "http://127.0.0.1:9/"


@schemathesis.hook
def before_call(context, case, kwargs):
    for key in list(case.path_parameters or {}):
        replace(case.path_parameters, key)
    for each in case.body if isinstance(case.body, list) else [case.body]:
        mend(each)


@schemathesis.hook
def after_call(context, case, response):
    if response.status_code == 200 and "json" in (response.headers.get("content-type") or [""])[0]:
        try:
            note(json.loads(response.content))
        except ValueError:
            pass
