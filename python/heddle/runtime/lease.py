"""Ends a worker whose server is silent: another server may execute its runs by now."""

from __future__ import annotations

import os
import threading
import time

from heddle.runtime.errors import log
from heddle.runtime.link import Link

SILENT = 3  # exit status
_TICKS = 20  # per lease
_FULL = 64 << 10  # unread bytes above which more may not fit: they count as a sign of life
_LOG_LIMIT = 0.2  # seconds; a server that does not run may not read the log either


class Lease:
    """A thread, because the code of a graph may block the loop.

    It counts its own ticks instead of comparing times, so that a worker that was stopped itself
    first sees what has arrived meanwhile.
    """

    def __init__(self, link: Link, seconds: float) -> None:
        self._link = link
        self._seconds = seconds
        self._thread = threading.Thread(target=self._watch, name="heddle-lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        tick = self._seconds / _TICKS
        before = self._link.received()
        silent = 0.0
        while silent < self._seconds:
            began = time.monotonic()
            time.sleep(tick)
            if self._link.is_lost:
                return
            now = self._link.received()
            is_heard = now[0] != before[0] or now[1] > before[1] or now[1] >= _FULL
            silent = 0.0 if is_heard else silent + min(time.monotonic() - began, 2 * tick)
            before = now
        _end(self._seconds)


def _end(seconds: float) -> None:
    text = f"the worker ends: the server has been silent for {seconds:g} s"
    teller = threading.Thread(target=log, args=(text,), daemon=True)
    teller.start()
    teller.join(_LOG_LIMIT)
    os._exit(SILENT)
