"""Watches changing files and detects a blocked event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable

from heddle.runtime.errors import is_library, log

_POLL = 0.5  # seconds between scans of the files
_BEAT = 0.5
_BLOCKED = 2.0  # seconds after which a loop counts as blocked


class Files:
    """The Python files of a project: the loaded ones and their neighbours.

    Loading started at `since`, in nanoseconds: a file written later may not have been read.
    """

    def __init__(self, folder: str, others: Iterable[str], since: int) -> None:
        self._folder = os.path.abspath(folder) + os.sep
        self._others = [os.path.abspath(each) for each in others]
        self._seen = {file: moment for file, moment in self._look().items() if moment < since}

    def changed(self) -> list[str]:
        """Files that were changed, added or removed since the last scan."""
        now = self._look()
        before, self._seen = self._seen, now
        return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))

    def _look(self) -> dict[str, int]:
        loaded = (getattr(each, "__file__", None) for each in (*sys.modules.values(),))
        folders = {
            os.path.dirname(file)
            for file in (*loaded, *self._others)
            if file and file.startswith(self._folder) and not is_library(file)
        }
        times: dict[str, int] = {}
        for folder in folders:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name.endswith(".py"):
                            times[entry.path] = entry.stat().st_mtime_ns
            except OSError:
                continue  # deleted meanwhile
        return times


async def wait_for_change(files: Files) -> list[str]:
    while True:
        await asyncio.sleep(_POLL)
        if changed := files.changed():
            return changed


class Watchdog:
    """Reports the location of the code that blocks the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._turned = time.monotonic()
        self._thread = threading.Thread(target=self._watch, name="heddle-watchdog", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def _beat(self) -> None:
        self._turned = time.monotonic()
        self._loop.call_later(_BEAT, self._beat)

    def _watch(self) -> None:
        has_told = False
        while not self._loop.is_closed():
            time.sleep(_BEAT)
            blocked = time.monotonic() - self._turned
            if blocked < _BLOCKED:
                has_told = False
            elif not has_told:
                has_told = True
                log(where_blocked(self._thread_id, blocked))


def where_blocked(thread_id: int, seconds: float) -> str:
    frame = sys._current_frames().get(thread_id)
    stack = traceback.extract_stack(frame) if frame else traceback.StackSummary()
    mine = [each for each in stack if not is_library(each.filename)] or stack[-5:]
    return (
        f"the event loop is blocked for {seconds:.1f} s: every run of this worker waits. "
        "Make the call async, or the node a plain function\n" + "".join(traceback.format_list(mine[-10:]))
    )
