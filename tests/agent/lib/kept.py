"""Everything that a server stores, as decompressed bytes that can be searched."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
import sqlite3
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from server import binary


class Zstd:
    """The library that the server also uses; its dictionary is in the program."""

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        self.lib.ZSTD_createDCtx.restype = ctypes.c_void_p
        for name in ("ZSTD_decompress_usingDict", "ZSTD_getFrameContentSize", "ZSTD_findFrameCompressedSize"):
            getattr(self.lib, name).restype = ctypes.c_uint64
        self.context = ctypes.c_void_p(self.lib.ZSTD_createDCtx())
        program = binary().read_bytes()
        start = program.index(b'"usage_metadata":{"input_tokens":,"output_tokens":,')
        self.words = program[start : program.index(b"\0", start)]

    def expand(self, frame: bytes) -> bytes:
        """Decompresses a frame with and without the dictionary; returns b"" if it is not a frame."""
        size = self.lib.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
        used = self.lib.ZSTD_findFrameCompressedSize(frame, ctypes.c_size_t(len(frame)))
        if size > 1 << 28 or used > len(frame):
            return b""
        found = b""
        for words in (self.words, b""):
            room = ctypes.create_string_buffer(size + 1)
            count = self.lib.ZSTD_decompress_usingDict(
                self.context,
                room,
                ctypes.c_size_t(size),
                frame,
                ctypes.c_size_t(used),
                words,
                ctypes.c_size_t(len(words)),
            )
            found += room.raw[:count] if count <= size else b""
        return found


def expanded(blob: bytes, zstd: Zstd) -> bytes:
    """Returns the bytes, followed by the content of all compressed frames in them."""
    found, at = blob, blob.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:
        found += b"\n" + zstd.expand(blob[at:])
        at = blob.find(b"\x28\xb5\x2f\xfd", at + 4)
    return found


def stored(server) -> bytes:
    """Every value of every row of the SQLite file, decompressed. The server must not be running."""
    zstd, found = Zstd(), b""
    with sqlite3.connect(server.folder / "heddle.db") as db:
        db.text_factory = bytes
        tables = [name.decode() for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in db.execute(f'SELECT * FROM "{table}"'):
                found += b"\n".join(expanded(value, zstd) for value in row if isinstance(value, bytes)) + b"\n"
    return found


BYTES = re.compile(rb"\\\\x([0-9a-f]+)")


def pg_dump() -> str:
    """Returns the newest pg_dump."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"), key=lambda path: int(path.parts[-3]))
    return str(found[-1]) if found else "pg_dump"


def dumped(url: str) -> bytes:
    """Returns a dump of a PostgreSQL schema, followed by all its bytes, decompressed."""
    parts = urlsplit(url)
    schema = parse_qs(parts.query)["schema"][0]
    dump = subprocess.run(
        [pg_dump(), "--dbname", parts._replace(query="").geturl(), "--schema", schema],
        check=True, capture_output=True, timeout=300, env={**os.environ, "PGCONNECT_TIMEOUT": "60"},
    ).stdout  # fmt: skip
    zstd = Zstd()
    return dump + b"\n".join(expanded(bytes.fromhex(found.decode()), zstd) for found in BYTES.findall(dump))
