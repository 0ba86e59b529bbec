"""Golden files: the responses and rows of a fixed scenario, with volatile parts replaced by names.

A test compares with the files in tests/data/golden; `HEDDLE_GOLDEN=write` rewrites them, and `git
diff` then shows the changes. A name such as <id-3> replaces the third id that occurred; the same id
has the same name everywhere.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path

import httpx
from plain import events

FOLDER = Path(__file__).resolve().parents[2] / "data/golden"
WIDTH = 100
HEADERS = (
    "allow",
    "content-location",
    "content-type",
    "location",
    "retry-after",
    "www-authenticate",
)
PARAMETER = re.compile(r"\{(\w+)\*?\}")
NOTHING = object()  # no body, which differs from null

# One expression, so that no replacement is replaced again. The first alternative that matches wins.
VOLATILE = re.compile(
    r"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<time>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?)"
    r"|(?P<version>(?<!\d)\d{32}\.0\.\d+)"
    r"|(?P<us>(?<![\d.])(?:17|18|19|20)\d{14}(?![\d.]))"
    r"|(?P<hash>(?<![0-9a-zA-Z_-])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-zA-Z_-]))"
    r"|(?P<date>[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d GMT)"
    r"|(?P<seconds>(?<=\"created\":)\d{10}(?!\d))"
    r"|(?P<port>(?<=127\.0\.0\.1:)\d+)"
)
COUNTED = ("id", "hash")
CHOSEN = "00000000-0000-4000-8000-"  # prefix of the ids that a scenario chooses
MEMBERS = {"uptime_seconds"}  # whose values are volatile


class Names:
    """Names volatile texts in the order in which they occur."""

    def __init__(self):
        self.kept: set[str] = set()  # ids that are the same in every run
        self.given: dict[str, str] = {}
        self.counts = dict.fromkeys((*COUNTED, "secret"), 0)

    def keep(self, *texts: str) -> None:
        self.kept.update(texts)

    def is_kept(self, text: str) -> bool:
        return text in self.kept or text.startswith(CHOSEN)

    def is_volatile(self, text: str) -> bool:
        return any(not self.is_kept(found[0]) for found in VOLATILE.finditer(text))

    def give(self, text: str, kind: str) -> str:
        """Returns the name of a text; creates one for a new text."""
        if text not in self.given:
            self.counts[kind] += 1
            self.given[text] = f"<{kind}-{self.counts[kind]}>"
        return self.given[text]

    def replace(self, text: str, is_final: bool = True) -> str:
        """Replaces volatile texts; if not is_final, all ids without a name become the same text."""

        def name(found: re.Match) -> str:
            kind, value = found.lastgroup, found[0]
            if kind == "version":  # keep the step, drop the random part
                return f"{value.split('.')[0]}.0.<random>"
            if self.is_kept(value):
                return value
            if kind not in COUNTED:
                return f"<{kind}>"
            if value not in self.given and not is_final:
                return f"<{kind}>"
            return self.give(value, kind)

        for secret in [value for value, given in self.given.items() if given.startswith("<secret")]:
            text = text.replace(secret, self.given[secret])
        return VOLATILE.sub(name, text)

    def member(self, name: str, value):
        return "<number>" if name in MEMBERS else self.replace_in(value)

    def replace_in(self, value):
        """Replaces volatile parts in all texts and numbers of a JSON value."""
        if isinstance(value, str):
            return self.replace(value)
        if isinstance(value, list):
            return [self.replace_in(each) for each in value]
        if isinstance(value, dict):
            return {self.replace(name): self.member(name, value[name]) for name in sorted(value)}
        if isinstance(value, int) and not isinstance(value, bool) and value >= 17 * 10**14:
            return "<us>"
        return value


# ---- files ----------------------------------------------------------------


def pretty(value, indent: int = 0) -> str:
    """Formats JSON; a value that fits in a line is in one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, list):
        parts = [pad + pretty(each, indent + 1) for each in value]
        return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
    parts = [f"{pad}{json.dumps(name, ensure_ascii=False)}: {pretty(each, indent + 1)}" for name, each in value.items()]
    return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"


def compare(name: str, text: str) -> None:
    """The text must equal the golden file."""
    file = FOLDER / name
    if os.environ.get("HEDDLE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return
    expected = file.read_text() if file.exists() else ""
    if text != expected:
        changes = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"golden {name}", "now", lineterm="", n=4
        )
        shown = "\n".join(line[:300] for line in list(changes)[:120])
        raise AssertionError(f"{name} differs; HEDDLE_GOLDEN=write writes it anew\n{shown}")


# ---- requests -------------------------------------------------------------


class Recorder:
    """Sends requests and records them with their responses, by area."""

    def __init__(self, http: httpx.Client, names: Names):
        self.http, self.names = http, names
        self.areas: dict[str, list[dict]] = {}
        self.called: set[tuple[str, str]] = set()

    def call(
        self, area: str, method: str, path: str, *, note: str = "", ids=None, body=None, **options
    ) -> httpx.Response:
        """`path` is the route's pattern, `ids` its parameters in order."""
        self.called.add((method, path))
        left = iter(ids or ())
        target = PARAMETER.sub(lambda _: str(next(left)), path)
        if body is not None:
            options["json"] = body
        answer = self.http.request(method, target, **options)
        self.keep(
            area,
            f"{method} {target}",
            note,
            body,
            options,
            answer.status_code,
            answer.headers,
            body_of(answer),
        )
        return answer

    def ask(self, area: str, method: str, path: str, *, status: int = 200, **options):
        """Sends a request that must succeed; returns its JSON."""
        answer = self.call(area, method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if is_json and answer.content.strip() else None

    def keep(self, area, request, note, body, options, status, headers, answer) -> None:
        sent = options.get("headers") or {}
        entry = {
            "request": request,
            "note": note,
            "params": options.get("params"),
            "body": options.get("content", NOTHING) if body is None else body,
            "sent_headers": {name: value for name, value in sent.items() if name.lower() != "authorization"},
            "status": status,
            "headers": {n: value for n, value in headers.items() if n in HEADERS or n.startswith("x-pagination")},
            "answer": answer,
        }
        self.areas.setdefault(area, []).append(
            {name: self.names.replace_in(value) for name, value in entry.items() if is_shown(name, value)}
        )

    def compare(self) -> None:
        for area, entries in self.areas.items():
            compare(f"{area}.json", "[\n" + ",\n".join(pretty(entry) for entry in entries) + "\n]\n")


def is_shown(name: str, value) -> bool:
    return value is not NOTHING if name in ("answer", "body") else bool(value)


def body_of(answer: httpx.Response):
    """Returns JSON unchanged, a stream as its events, and only the type of other bodies."""
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        return frames(answer.text)
    if not answer.content.strip():
        return NOTHING
    return answer.json() if kind.startswith("application/json") else "(not compared)"


def frames(text: str) -> list[dict]:
    """Returns the events of a stream, with `id` if present."""
    found = []
    for name, data, identity in events(text):
        found.append({"event": name, "data": data} | ({"id": identity} if identity else {}))
    return found
