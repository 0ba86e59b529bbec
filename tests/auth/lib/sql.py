"""Access to the databases without Heddle: SQL, and the bytes of their files."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:")


def sqlite_file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:"))


def psql(url: str, text: str) -> str:
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    done = subprocess.run(
        ["psql", url.split("?")[0], "-v", "ON_ERROR_STOP=1", "-qAt"], input=f'SET search_path TO "{schema}";\n{text};\n',
        text=True, capture_output=True, timeout=120, env=os.environ | {"PGOPTIONS": "-c client_min_messages=warning"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def columns(url: str, table: str) -> list[tuple[str, str]]:
    """Returns [(name, type)], types in lower case."""
    if is_sqlite(url):
        with sqlite3.connect(sqlite_file(url)) as db:
            return [(row[1], row[2].lower()) for row in db.execute(f"PRAGMA table_info({table})")]
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    rows = psql(
        url, "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position",
    )  # fmt: skip
    return [tuple(line.split("|")) for line in rows.splitlines()]


def texts(url: str, table: str, column: str) -> list[str]:
    """Returns that column of all rows."""
    if is_sqlite(url):
        with sqlite3.connect(sqlite_file(url)) as db:
            found = [row[0] for row in db.execute(f"SELECT {column} FROM {table}")]
        return [value.decode() if isinstance(value, bytes) else value for value in found]
    return psql(url, f"SELECT convert_from({column}, 'UTF8') FROM {table}").splitlines()


def insert(url: str, table: str, row: dict) -> None:
    """Values: int, str, or bytes for columns of bytes."""
    names = ", ".join(row)
    if is_sqlite(url):
        with sqlite3.connect(sqlite_file(url)) as db:
            db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        return

    def literal(value) -> str:
        if isinstance(value, bytes):
            return f"'\\x{value.hex()}'::bytea"
        return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"

    psql(url, f"INSERT INTO {table} ({names}) VALUES ({', '.join(map(literal, row.values()))})")
