"""Compares Heddle's channels with LangGraph's: the same random updates, step by step.

    channels_check.py DRIVER [CASES [SEED]]

DRIVER is the program of tests/equivalence/channels.c. After every operation both must agree on the
change, the value, the checkpointed value, and the error. The cases are always the same; SEED, a
number or "random", selects others. Ends with "N passed, N failed".
"""

import copy
import json
import operator
import random
import re
import subprocess
import sys

from langgraph._internal._typing import MISSING
from langgraph.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    LastValue,
    NamedBarrierValue,
    Topic,
    UntrackedValue,
)
from langgraph.channels.last_value import LastValueAfterFinish
from langgraph.channels.named_barrier_value import NamedBarrierValueAfterFinish
from langgraph.errors import EmptyChannelError
from langgraph.graph.message import add_messages
from values import decode, encode

NAMES = ["a", "b", "c"]
TYPES = {"number": int, "string": str, "list": list, "object": dict, "boolean": bool}
OPERATORS = {
    "add": operator.add,
    "merge": operator.or_,
    "max": max,
    "min": min,
    "and": operator.and_,
    "or": operator.or_,
    "messages": add_messages,
}
# The types of each reducer; the reducers of PLAIN have no type.
TYPED = {
    "add": ("number", "string", "list"),
    "merge": ("object",),
    "max": ("number", "string", "list"),
    "min": ("number", "string", "list"),
    "and": ("boolean", "number"),
    "or": ("boolean", "number"),
    "messages": ("list",),
}
PLAIN = (
    "last",
    "any",
    "ephemeral",
    "untracked",
    "topic",
    "trigger",
    "trigger_after",
    "barrier",
    "barrier_after",
)


# ---- operations ------------------------------------------------------------------------


def scalar(rnd):
    return rnd.choice(
        [
            None,
            True,
            False,
            rnd.randint(-5, 5),
            rnd.randint(-(2**40), 2**40),
            rnd.choice([0.5, -2.25, 1e20, 1e-9, 3.0]),
            rnd.choice(["", "a", "b", "é", "zz"]),
        ]
    )


def anything(rnd, depth=2):
    kind = rnd.random()
    if depth == 0 or kind < 0.5:
        return scalar(rnd)
    if kind < 0.75:
        return [anything(rnd, depth - 1) for _ in range(rnd.randint(0, 3))]
    return {rnd.choice("abcd"): anything(rnd, depth - 1) for _ in range(rnd.randint(0, 3))}


def of_type(rnd, name):
    if name == "number":
        return rnd.choice([rnd.randint(-9, 9), rnd.uniform(-9, 9), rnd.randint(0, 2**45)])
    if name == "string":
        return rnd.choice(["", "a", "b", "ab", "é", "漢", "zz top"])
    if name == "boolean":
        return rnd.random() < 0.5
    if name == "list":
        return [anything(rnd, 1) for _ in range(rnd.randint(0, 3))]
    return {rnd.choice("abcdefghijkl"): anything(rnd, 1) for _ in range(rnd.randint(0, 4))}


def message(rnd):
    ident = f"m{rnd.randint(0, 7)}"
    text = rnd.choice(["hi", "", "long " * 20, [{"type": "text", "text": "block"}]])
    choice = rnd.random()
    if choice < 0.35:
        return {"$": "message", "type": rnd.choice(["human", "ai", "system"]), "content": text, "id": ident}
    if choice < 0.45:
        return {
            "$": "message",
            "type": "ai",
            "content": text,
            "id": ident,
            "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}],
        }
    if choice < 0.55:
        return {"$": "message", "type": "remove", "content": "", "id": ident}
    if choice < 0.58:
        return {"$": "message", "type": "remove", "content": "", "id": "__remove_all__"}
    if choice < 0.64:
        return {"$": "message", "type": "AIMessageChunk", "content": text, "id": ident}
    if choice < 0.7:
        return {"$": "message", "type": "tool", "content": "t", "id": ident, "tool_call_id": "c1"}
    if choice < 0.76:
        return rnd.choice(["plain text", ""])
    if choice < 0.82:
        return [rnd.choice(["user", "assistant", "system", "human", "ai"]), "pair"]
    if choice < 0.9:
        return {"role": rnd.choice(["user", "assistant", "system"]), "content": text}
    if choice < 0.97:
        return {"type": rnd.choice(["human", "ai"]), "content": text, "id": ident}
    return rnd.choice([5, None, {"content": "nobody"}, ["nobody", "x"], True])


def overwrite(rnd, value):
    return rnd.choice(
        [
            {"$": "overwrite", "value": value},
            {"__overwrite__": value},
            {"type": "__overwrite__", "value": value},
        ]
    )


def one_update(rnd, case):
    reducer, typ = case["reducer"], case.get("type")
    if reducer == "messages":
        several = [message(rnd) for _ in range(rnd.randint(0, 3))]
        value = several if rnd.random() < 0.8 else message(rnd)
    elif typ:
        value = of_type(rnd, typ) if rnd.random() < 0.93 else anything(rnd)
    elif reducer in ("barrier", "barrier_after"):
        return rnd.choice(NAMES) if rnd.random() < 0.97 else rnd.choice(["d", None, 1])
    else:
        return anything(rnd)
    return overwrite(rnd, value) if rnd.random() < 0.04 else value


def make_case(rnd):
    reducer = rnd.choice(list(TYPED) + list(PLAIN))
    case = {"reducer": reducer}
    if reducer in TYPED:
        case["type"] = rnd.choice(TYPED[reducer])
        case["initial"] = TYPES[case["type"]]()
    if reducer == "topic":
        case["accumulate"] = rnd.random() < 0.5
    if reducer.startswith("barrier"):
        case["names"] = NAMES
    case["ops"] = []
    for _ in range(rnd.randint(1, 12)):
        kind = rnd.random()
        if kind < 0.75:
            count = rnd.choice([0, 1, 1, 1, 1, 2, 3])
            case["ops"].append(["update", [one_update(rnd, case) for _ in range(count)]])
        else:
            case["ops"].append([rnd.choice(["consume", "finish", "save"])])
    return case


# ---- LangGraph's side ------------------------------------------------------------------


def make_channel(case):
    reducer = case["reducer"]
    if reducer in TYPED:
        channel = BinaryOperatorAggregate(TYPES[case["type"]], OPERATORS[reducer])
    else:
        channel = {
            "last": lambda: LastValue(object),
            "any": lambda: AnyValue(object),
            "ephemeral": lambda: EphemeralValue(object),
            "untracked": lambda: UntrackedValue(object),
            "trigger": lambda: EphemeralValue(object, guard=False),
            "topic": lambda: Topic(object, accumulate=case["accumulate"]),
            "trigger_after": lambda: LastValueAfterFinish(object),
            "barrier": lambda: NamedBarrierValue(str, set(NAMES)),
            "barrier_after": lambda: NamedBarrierValueAfterFinish(str, set(NAMES)),
        }[reducer]()
    channel.key = "key"
    return channel


def snapshot(value):
    """Copies a value; MISSING keeps its identity."""
    return copy.deepcopy(value, {id(MISSING): MISSING})


def langgraph_step(channel, op):
    answer = {}
    before = snapshot(channel)
    try:
        if op[0] == "update":
            answer["changed"] = channel.update(decode(op[1]))
        elif op[0] == "consume":
            answer["changed"] = channel.consume()
        elif op[0] == "finish":
            answer["changed"] = channel.finish()
        else:
            channel = channel.from_checkpoint(snapshot(channel.checkpoint()))
    except Exception as error:
        answer["changed"] = False
        answer["error"] = [type(error).__name__, str(error)]
        channel = before
    try:
        answer["value"] = encode(channel.get())
    except EmptyChannelError:
        pass
    saved = channel.checkpoint()
    if saved is not MISSING:
        answer["saved"] = encode(saved)
    return channel, answer


def langgraph_answers(case):
    channel = make_channel(case)
    answers = []
    for op in case["ops"]:
        channel, answer = langgraph_step(channel, op)
        answers.append(answer)
    return answers


# ---- comparing -------------------------------------------------------------------------

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Normaliser:
    """Names ids by the order in which they appear; sorts sets and errors."""

    def __init__(self):
        self.ids = {}

    def name_of(self, match):
        return self.ids.setdefault(match.group(), f"id-{len(self.ids)}")

    def value(self, value):
        if isinstance(value, str):
            return UUID.sub(self.name_of, value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            if value.get("$") == "set":
                return {"$": "set", "items": sorted(value["items"])}
            return {key: self.value(item) for key, item in value.items()}
        return value

    def error(self, error):
        name, text = error
        # Heddle has its own texts for invalid messages.
        if (
            name in ("NotImplementedError", "ValueError")
            and "message" in text.lower()
            and "delete a message" not in text
        ):
            return ["a message", ""]
        return [name, re.sub(r"\{.*\}", lambda m: "".join(sorted(m.group())), text)]

    def answer(self, answer):
        result = {key: self.value(answer[key]) for key in ("value", "saved") if key in answer}
        if "error" in answer:
            result["error"] = self.error(answer["error"])
        return {"changed": answer.get("changed"), **result}


def compare(case, ours, theirs):
    """Returns the first difference, or None."""
    left, right = Normaliser(), Normaliser()
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        mine, its = json.dumps(left.answer(mine)), json.dumps(right.answer(its))
        if mine != its:
            return (
                f"{case['reducer']}, operation {number}"
                f"\n  {json.dumps(case['ops'][: number + 1])}"
                f"\n  heddle    {mine}\n  langgraph {its}"
            )
    return None


def main():
    driver = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    seed = random.randrange(2**32) if seed == "random" else int(seed)
    rnd = random.Random(seed)
    print(f"seed {seed}")
    cases = [make_case(rnd) for _ in range(count)]
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    done = subprocess.run([driver], input=lines.encode(), capture_output=True, check=False)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    failed = count - len(answers)
    if done.returncode != 0 or failed:
        failed = max(failed, 1)
        print(
            f"failed: channels, seed {seed}: the driver ended with {done.returncode} after "
            f"{len(answers)} cases\n{done.stderr.decode()}{json.dumps(cases[-failed])}"
        )
    for number, (case, ours) in enumerate(zip(cases, answers)):
        difference = compare(case, ours, langgraph_answers(case))
        if difference:
            failed += 1
            print(f"failed: channels, seed {seed}, case {number}: {difference}")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
