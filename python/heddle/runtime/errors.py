"""Formats an exception: its type, its text, and its location in the project."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Any

_MAX_TEXT = 16 << 10
_MAX_FRAMES = 30
_LIBRARIES = (
    os.path.dirname(os.__file__) + os.sep,
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
)


class LoadError(Exception):
    """A part of the project is missing or invalid."""


def is_library(file: str) -> bool:
    """Reports whether code belongs to Python, a package or Heddle, not to the project."""
    return (
        file.startswith("<")
        or f"{os.sep}site-packages{os.sep}" in file
        or f"{os.sep}dist-packages{os.sep}" in file
        or file.startswith(_LIBRARIES)
    )


def describe(error: BaseException) -> dict[str, Any]:
    """An exception in the format of the protocol."""
    # A group of one exception, as task groups raise it, is replaced by that exception.
    inner: Any = getattr(error, "exceptions", None)
    if isinstance(inner, tuple) and len(inner) == 1:
        error = inner[0]
    report: dict[str, Any] = {
        "type": type(error).__name__,
        "message": _message(error)[:_MAX_TEXT],
    }
    frames = user_frames(error.__traceback__)
    report["traceback"] = _format(error, frames)
    if isinstance(error, SyntaxError) and error.filename:
        report["file"], report["line"] = error.filename, error.lineno or 1
    elif frames:
        report["file"], report["line"] = frames[-1].filename, frames[-1].lineno or 1
    return report


def user_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of the project's own code."""
    frames = traceback.extract_tb(trace)
    return [each for each in frames if not is_library(each.filename)][-_MAX_FRAMES:]


def _format(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    parts = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause.__traceback__ is not None:
        parts += _section(cause, user_frames(cause.__traceback__))
        parts.append("\nwhich led to:\n\n")
    if not frames and not isinstance(error, (SyntaxError, LoadError)):
        frames = list(traceback.extract_tb(error.__traceback__)[-3:])
    parts += _section(error, frames)
    return "".join(parts)[-_MAX_TEXT:]


def _section(error: BaseException, frames: list[traceback.FrameSummary]) -> list[str]:
    start = ["Traceback (most recent call last):\n"] if frames else []
    return [
        *start,
        *traceback.format_list(frames),
        *traceback.format_exception_only(type(error), error),
    ]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def log(text: str) -> None:
    """Writes a line to the server's log, which receives the output of workers."""
    print(text, file=sys.stderr, flush=True)
