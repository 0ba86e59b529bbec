"""Hooks of schemathesis: generated requests refer to things that exist.

Some generated ids are replaced by ids from earlier responses, so that not every request is refused;
graphs are named; and delays are short.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict, deque

import schemathesis

GRAPHS = os.environ["HEDDLE_FUZZ_GRAPHS"].split(",")
SECONDS = 0.05  # the longest delay of a run
chance = random.Random(int(os.environ["HEDDLE_FUZZ_SEED"]))
seen: dict[str, deque] = defaultdict(lambda: deque(maxlen=20))
KINDS = ("thread_id", "run_id", "assistant_id", "checkpoint_id", "cron_id", "head")


def note(value) -> None:
    """Keeps the ids in a response."""
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
    """Replaces a generated id by an existing one."""
    if key in ("assistant_id", "graph_id") and chance.random() < 0.6:
        place[key] = chance.choice(GRAPHS)
    elif chance.random() < 0.7 and known(key):
        place[key] = known(key)


def mend(body) -> None:
    """Changes members of the right type only: wrong ones are wrong on purpose."""
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
    # A webhook would send a request to another host.
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
