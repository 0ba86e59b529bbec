"""Every row of a SQLite database as text for a golden file.

This decodes the binary columns independently of Heddle, from the description of the format alone. A
change of the stored bytes therefore shows even if Heddle still reads its own rows. Bytes left over
after decoding are an error.
"""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import xxhash
import zstandard
from golden import FOLDER, Names

RAW, ZSTD, ZSTD_WORDS = 0, 1, 2
SEGMENT_RUN, SEGMENT_FIRST_COMMA, SEGMENT_REST_COMMA, SEGMENT_NAMED = 1, 2, 4, 8
MICROSECONDS = 17 * 10**14  # integers from here on are timestamps


def dictionary() -> bytes:
    """The dictionary of codec 2. It is part of the stored format, so it has its own golden file."""
    text = (FOLDER / "pack-words-1.txt").read_text().replace("\n", "")
    return re.sub(rb"\\x(..)", lambda found: bytes([int(found[1], 16)]), text.encode())


def unpack(packed: bytes) -> bytes:
    """A codec byte, then the bytes as they are or a zstd frame."""
    codec, rest = packed[0], packed[1:]
    if codec == RAW:
        return rest
    words = zstandard.ZstdCompressionDict(dictionary(), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    with_words = {"dict_data": words} if codec == ZSTD_WORDS else {}
    assert codec in (ZSTD, ZSTD_WORDS), codec
    return zstandard.ZstdDecompressor(**with_words).decompress(rest)


class Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        assert len(found) == count, "the bytes end too early"
        self.at += count
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def piece(self) -> bytes:
        return self.take(self.varint())

    def is_over(self) -> bool:
        return self.at == len(self.data)


def text_of(data: bytes) -> str:
    """One line; control characters and invalid UTF-8 are escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# ---- the binary columns -----------------------------------------------------


class Values:
    """Values in checkpoints and writes, with the chunks that they refer to."""

    def __init__(self, database: sqlite3.Connection, names: Names):
        rows = database.execute("SELECT thread_id, stream, seq, data FROM chunks")
        self.chunks = {(thread, stream, seq): unpack(data) for thread, stream, seq, data in rows}
        # If a chunk sequence contains random ids, they decide where a value is cut: show such
        # values whole.
        self.volatile = {key[:2] for key, data in self.chunks.items() if names.is_volatile(text_of(data))}

    def segments(self, reader: Reader, thread: str, own: str) -> tuple[bytes, list[str]]:
        """Returns the value and a description of its segments."""
        value, lines, end = b"", [], 0
        for _ in range(reader.varint()):
            flags = reader.byte()
            if not flags & SEGMENT_RUN:
                assert flags == 0, flags
                literal = reader.piece()
                value += literal
                lines.append(f"  literal {text_of(literal)}")
                continue
            stream = reader.piece().decode() if flags & SEGMENT_NAMED else own
            gap = reader.varint()
            first, count = end + ((gap >> 1) ^ -(gap & 1)), reader.varint()
            end = first + count
            for seq in range(first, end):
                has_comma = flags & (SEGMENT_FIRST_COMMA if seq == first else SEGMENT_REST_COMMA)
                value += (b"," if has_comma else b"") + self.chunks[thread, stream, seq]
            lines.append(f"  chunks {first} to {end - 1} of {stream}, flags {flags}")
        return value, lines

    def reference(self, data: bytes, thread: str, own: str) -> list[str]:
        """1 and the bytes; or 2, the size, a checksum, and literals and extents of chunks."""
        if data[0] == 1:
            return [f"inline {text_of(data[1:])}"]
        reader = Reader(data)
        assert reader.byte() == 2, data[0]
        size, checksum = reader.varint(), reader.take(8)
        value, lines = self.segments(reader, thread, own)
        assert reader.is_over() and len(value) == size
        assert checksum == xxhash.xxh3_64_digest(value)[::-1]
        if (thread, own) in self.volatile:
            return [f"chunked, {size} bytes", f"  {text_of(value)}"]
        return [f"chunked, {size} bytes, checksum {checksum.hex()}", *lines]

    def checkpoint(self, row: dict) -> list[str]:
        reader = Reader(unpack(row["checkpoint"]))
        lines = [
            f"format {reader.varint()}, v {reader.varint()}",
            f"json {text_of(reader.piece())}",
        ]
        for _ in range(reader.varint()):
            channel, kind = text_of(reader.piece()), text_of(reader.piece())
            first, *more = self.reference(reader.piece(), row["thread_id"], channel)
            lines += [f"channel {channel} ({kind}): {first}", *more]
        assert reader.is_over()
        return lines

    def write(self, row: dict) -> list[str]:
        return self.reference(row["value"], row["thread_id"], row["channel"])


def event_page(row: dict) -> list[str]:
    reader, lines = Reader(unpack(row["data"])), []
    while not reader.is_over():
        seq, mode, is_last = reader.varint(), reader.varint(), reader.byte()
        name, data = text_of(reader.piece()), text_of(reader.piece())
        lines.append(f"{seq} mode {mode} last {is_last} {name} {data}")
    return lines


def exchange(row: dict) -> list[str]:
    reader = Reader(unpack(row["data"]))
    lines = [f"format {reader.byte()}"]
    for name in ("place", "peer", "method", "url", "request", "error", "headers", "body"):
        lines.append(f"{name} {text_of(reader.piece())}")
    lines.append(f"status {reader.varint()} tries {reader.varint()} flags {reader.byte()}")
    assert reader.is_over()
    return lines


def chunk(row: dict) -> list[str]:
    return [text_of(unpack(row["data"]))]


def chunk_hash(row: dict) -> list[str]:
    assert row["hash"] == xxhash.xxh3_128_digest(unpack(row["data"]))[::-1]
    return [f"xxh3_{row['hash'].hex()}"]


def webhook(row: dict) -> list[str]:
    return [text_of(unpack(row["body"]))]


# ---- rows -------------------------------------------------------------------

# The revision at which a word was indexed depends on when the indexer ran.
TIMING = {("thread_texts", "rev"), ("thread_words", "rev")}


class Dump:
    def __init__(self, database: sqlite3.Connection, names: Names):
        self.database, self.names = database, names
        self.values = Values(database, names)
        self.columns = {
            ("checkpoints", "checkpoint"): self.values.checkpoint,
            ("writes", "value"): self.values.write,
            ("chunks", "data"): chunk,
            ("chunks", "hash"): chunk_hash,
            ("event_pages", "data"): event_page,
            ("exchanges", "data"): exchange,
            ("outbox", "body"): webhook,
        }

    def cell(self, table: str, column: str, row: dict) -> list[str]:
        value = row[column]
        if value is None:
            return ["null"]
        if (table, column) in TIMING:
            return ["<rev>"]
        if (table, column) in self.columns:
            return self.columns[table, column](row)
        if isinstance(value, int):
            return ["<us>" if value >= MICROSECONDS else str(value)]
        return [value.hex() if isinstance(value, bytes) else text_of(value.encode())]

    def row(self, table: str, row: dict) -> str:
        lines = []
        for column in row:
            first, *more = self.cell(table, column, row)
            if more:
                lines += [f"  {column}:", *(f"    {line}" for line in (first, *more))]
            else:
                lines.append(f"  {column}: {first}".rstrip())
        return "\n".join(lines)

    def rows(self, table: str) -> list[dict]:
        rows = [dict(row) for row in self.database.execute(f"SELECT * FROM {table}")]
        if table == "event_pages":
            return merged_pages(rows)
        if table == "chunks":
            return [row for row in rows if (row["thread_id"], row["stream"]) not in self.values.volatile]
        return rows

    def table(self, table: str) -> str:
        """Rows in the order of their texts; rows that differ only in new ids keep their stored
        order."""
        texts = [self.row(table, row) for row in self.rows(table)]
        texts.sort(key=lambda text: natural(self.names.replace(text, is_final=False)))
        named = [self.names.replace(text) for text in texts]
        return f"== {table}: {len(named)} rows\n" + "".join(f"-\n{text}\n" for text in named)


def natural(text: str) -> list:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def merged_pages(rows: list[dict]) -> list[dict]:
    """Merges the pages of a run, whose number depends on timing, into one row; a gap starts a new
    row."""
    found: list[dict] = []
    for row in sorted(rows, key=lambda row: (row["principal"], row["thread_id"], row["first_seq"])):
        last = found[-1] if found else None
        same = ("principal", "thread_id", "run_id")
        if last and all(last[name] == row[name] for name in same) and last["last_seq"] + 1 == row["first_seq"]:
            joined = bytes([RAW]) + unpack(last["data"]) + unpack(row["data"])
            found[-1] = last | {"last_seq": row["last_seq"], "data": joined}
        else:
            found.append(row)
    return found


def tables(database: sqlite3.Connection) -> list[str]:
    found = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    return [row[0] for row in found]


def open_database(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database


def dump(file: Path, names: Names) -> str:
    database = open_database(file)
    try:
        database.execute("BEGIN")
        shown = Dump(database, names)
        return "\n".join(shown.table(table) for table in tables(database))
    finally:
        database.close()


def schema(file: Path) -> str:
    database = open_database(file)
    try:
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name")
        return "".join(row[0].strip() + ";\n" for row in rows)
    finally:
        database.close()


def export_text(output: str, names: Names) -> str:
    """The lines of `heddle export`, with members in their written order."""
    lines = [json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")) for line in output.splitlines()]
    return "\n".join(lines) and names.replace("\n".join(lines)) + "\n"
