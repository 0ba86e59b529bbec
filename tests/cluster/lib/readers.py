"""Streams as readers see them who lose their connection and come back, through any server.

A journal keeps the events of a stream. A reader that always comes back with the id of its last event
must see each event once, in order; so an id that is not greater than the one before it is an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading

import httpx
from plain import events

GAP = 1_000_000
MODES = ["values", "updates", "messages-tuple"]


class Journal:
    """The events of one run, or of one thread, as one reader saw them. is_compact: data become
    hashes, except those of `metadata` and `end`."""

    def __init__(self, first: str = "-1", is_compact: bool = False):
        self.is_compact = is_compact
        self.first = first  # Last-Event-ID for everything that is kept
        self.frames: list[tuple[str, object, int]] = []  # (event, data, id)
        self.rest = ""

    def feed(self, text: str, most: float = math.inf, ends: bool = True) -> None:
        """Takes what has arrived, until there are `most` events; a frame that is not complete waits
        for its rest. ends: nothing follows the event `end`, as in the stream of a run."""
        self.rest += text.replace("\r\n", "\n")
        whole, mark, rest = self.rest.rpartition("\n\n")
        if not mark:
            return
        self.rest = rest
        for name, data, number in events(whole + mark):
            if len(self.frames) >= most:
                return
            assert number is not None, (name, data)
            assert not self.frames or int(number) > self.frames[-1][2], (name, data, number, self.frames[-1])
            assert not (ends and self.has_ended()), (name, data, number)
            if self.is_compact and name not in ("metadata", "end"):
                data = hash(json.dumps(data))
            self.frames.append((name, data, int(number)))

    def breaks(self) -> None:
        """The connection is lost: half a frame counts for nothing."""
        self.rest = ""

    def has_ended(self) -> bool:
        return bool(self.frames) and self.frames[-1][0] == "end"

    @property
    def last(self) -> str:
        """The value of Last-Event-ID."""
        return str(self.frames[-1][2]) if self.frames else self.first

    def names(self) -> list[str]:
        return [name for name, _, _ in self.frames]

    def attempts(self) -> list[int]:
        return [data["attempt"] for name, data, _ in self.frames if name == "metadata"]

    def parts(self) -> list[list[tuple]]:
        """The events of each attempt, and the last ones of a run that was given up, behind the gap
        that each loss leaves in the numbers."""
        found: list[list[tuple]] = []
        for frame in self.frames:
            if frame[0] == "metadata" or not found or frame[2] > found[-1][-1][2] + GAP / 2:
                found.append([])
            found[-1].append(frame)
        return found


def agree(seen: Journal, stored: Journal) -> None:
    """What a reader of a whole run saw is what is stored, but for events that were sent and not
    stored when a server died: the end of an attempt."""
    theirs, ours = seen.parts(), stored.parts()
    firsts = {part[0][2]: part for part in theirs}
    for number, part in enumerate(ours):
        assert part[0][2] in firsts, (part[0], list(firsts))
        matching = firsts.pop(part[0][2])
        is_last = number == len(ours) - 1
        assert (matching if is_last else matching[: len(part)]) == part, (matching, part)
    # An attempt of which nothing was stored.
    assert all(part[0][0] == "metadata" for part in firsts.values()), firsts


class Reader:
    """Reads in the background, over one connection."""

    def __init__(self, url: str, path: str, method: str = "GET", **options):
        self.kept, self.is_open, self.status = Journal(), threading.Event(), 0
        self.headers: httpx.Headers | None = None
        self.error: BaseException | None = None
        self.leaving = False
        self.thread = threading.Thread(target=self.read, args=(method, url + path, options), daemon=True)
        self.thread.start()
        assert self.is_open.wait(60), "no answer"

    @property
    def journal(self) -> Journal:
        if self.error:
            raise self.error
        return self.kept

    def read(self, method: str, url: str, options: dict) -> None:
        try:
            with httpx.stream(method, url, timeout=60, **options) as answer:
                self.status, self.headers = answer.status_code, answer.headers
                self.is_open.set()
                if self.status != 200:
                    return
                for piece in answer.iter_text():
                    self.kept.feed(piece, ends="/runs/" in url)
                    if self.leaving:
                        return
        except httpx.TransportError:
            self.kept.breaks()
        except BaseException as error:
            self.error = error
        finally:
            self.is_open.set()

    def join(self, seconds: float = 60) -> Journal:
        self.thread.join(seconds)
        assert not self.thread.is_alive(), f"the stream does not end: {self.journal.names()}"
        return self.journal

    def leave(self) -> Journal:
        """Closes the connection at the next event or heartbeat."""
        self.leaving = True
        return self.join()


def read_some(url: str, path: str, journal: Journal, count: int) -> None:
    """Continues a journal by at most `count` events, and leaves."""
    wanted = len(journal.frames) + count
    headers = {"Last-Event-ID": journal.last}
    with httpx.stream("GET", url + path, headers=headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        for piece in answer.iter_text():
            journal.feed(piece, wanted)  # a reader that leaves may have received more than it handled
            if len(journal.frames) >= wanted or journal.has_ended():
                break
    journal.breaks()


async def follow(
    http: httpx.AsyncClient, path: str, journal: Journal, patience: float, params: dict | None = None
) -> None:
    """Reads a run to its end, and comes back as often as it must. A stream may close before its end,
    but not while it has nothing to say and the run has ended."""
    deadline = asyncio.get_running_loop().time() + patience
    closed = 0
    while not journal.has_ended():
        assert asyncio.get_running_loop().time() < deadline, f"{path} does not end: {journal.frames[-3:]}"
        seen = len(journal.frames)
        with contextlib.suppress(httpx.TransportError):
            headers = {"Last-Event-ID": journal.last}
            async with http.stream("GET", path, headers=headers, params=params) as answer:
                if answer.status_code == 200:
                    async for piece in answer.aiter_text():
                        journal.feed(piece)
                    closed = closed + 1 if len(journal.frames) == seen else 0
                elif answer.status_code not in (502, 503, 504):
                    raise AssertionError(f"{path}: {answer.status_code} {(await answer.aread()).decode()}")
        journal.breaks()
        assert closed < 30, f"{path} closes without an `end`: {journal.frames[-3:]}"
        if not journal.has_ended():
            await asyncio.sleep(0.2)
