"""Records that only another runtime can read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """A value of another or a newer runtime: kept and written back unchanged.

    ``record`` is its canonical JSON text (docs/encoding.md).
    """

    record: bytes
