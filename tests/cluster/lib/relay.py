"""TCP relays that can be cut, in a process of their own so that tests do not slow them down.

    with Relays() as relays:
        port = relays.open("database of a", ("127.0.0.1", 5432))
        relays.cut("database of a")                # nothing passes; connections stay open
        relays.cut("address of b", pids=[123])     # only what that process has connected or connects
        relays.cut("address of b", breaks=True)    # connections break, and new ones are refused
        relays.mend("database of a")               # what was sent meanwhile arrives

A cut without `breaks` is a network that drops packets: no side gets an error, and sent bytes
arrive when the network is back. The process reads commands from its input, one JSON line each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

PIECE = 256 * 1024
CONNECT_SECONDS = 60


def sockets_of(pid: int) -> set[int]:
    """Returns the inodes of the sockets of a process."""
    found = set()
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if match := re.match(r"socket:\[(\d+)\]", os.readlink(file)):
                    found.add(int(match[1]))
    return found


def ports_of(pids: list[int]) -> set[int]:
    """Returns the local TCP ports of the processes."""
    inodes = set().union(*map(sockets_of, pids))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if int(fields[9]) in inodes}


class Link:
    """One connection and its continuation to the target."""

    def __init__(self, port: int):
        self.port, self.passes = port, asyncio.Event()
        self.passes.set()
        self.writers: list[asyncio.StreamWriter] = []

    def reset(self) -> None:
        self.passes.set()
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tap=lambda piece: None) -> None:
        """Copies until the end of the input. What was read before a cut, but not written, waits."""
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                tap(piece)
                await self.passes.wait()
                writer.write(piece)
                await writer.drain()
            await self.passes.wait()
            if writer.can_write_eof():
                writer.write_eof()


class Relay:
    """One port and where it leads."""

    def __init__(self, host: str, port: int):
        self.target = host, port
        self.links: set[Link] = set()
        self.is_cut = self.breaks = False
        self.pids: list[int] | None = None  # None: a cut concerns everybody
        self.server: asyncio.Server | None = None
        self.port = 0
        self.tap: bytearray | None = None  # what has passed on the way to the target

    async def listen(self) -> None:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port, limit=PIECE, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    def concerns(self, port: int) -> bool:
        return self.is_cut and (self.pids is None or port in ports_of(self.pids))

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(writer.get_extra_info("peername")[1])
        link.writers.append(writer)
        self.links.add(link)
        try:
            if self.concerns(link.port):
                link.passes.clear()
                if self.breaks:
                    return
            await link.passes.wait()
            await self.join(link, reader, writer)
        finally:
            self.links.discard(link)
            link.reset()

    def keep(self, piece: bytes) -> None:
        if self.tap is not None:
            self.tap += piece

    async def join(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward = asyncio.open_connection(*self.target, limit=PIECE)
            far_reader, far_writer = await asyncio.wait_for(onward, CONNECT_SECONDS)
        except (OSError, TimeoutError):
            return
        link.writers.append(far_writer)
        there = asyncio.create_task(link.pump(reader, far_writer, self.keep))
        back = asyncio.create_task(link.pump(far_reader, writer))
        # When one side has ended the other may still send; a broken connection breaks both.
        done, _ = await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        if back in done:
            there.cancel()
        await asyncio.wait([there, back])
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def cut(self, breaks: bool, pids: list[int] | None) -> None:
        self.is_cut, self.breaks, self.pids = True, breaks, pids
        ports = None if pids is None else ports_of(pids)
        if breaks and pids is None:
            self.server.close()
        for link in list(self.links):
            if ports is None or link.port in ports:
                link.passes.clear()
                if breaks:
                    link.reset()

    async def mend(self) -> None:
        was_closed = self.breaks and self.pids is None
        self.is_cut, self.breaks, self.pids = False, False, None
        if was_closed:
            await self.listen()
        for link in self.links:
            link.passes.set()


async def obey(relays: dict[str, Relay], order: dict) -> dict:
    name, do = order["name"], order["do"]
    if do == "open":
        relays[name] = Relay(order["host"], order["port"])
        relays[name].port = order["own"]
        await relays[name].listen()
    elif do == "cut":
        await relays[name].cut(order["breaks"], order["pids"])
    elif do == "mend":
        await relays[name].mend()
    elif do == "tap":
        relays[name].tap = bytearray()
    elif do == "tapped":
        return {"seen": relays[name].tap.decode("latin-1")}
    return {"port": relays[name].port}


async def serve() -> None:
    relays: dict[str, Relay] = {}
    loop, orders = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        try:
            answer = await obey(relays, json.loads(line))
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # open connections are not needed any more


class Relays:
    """The process that relays."""

    def __enter__(self) -> Relays:
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-B", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()

    def order(self, do: str, name: str, **more) -> dict:
        with self.lock:
            self.process.stdin.write(json.dumps({"do": do, "name": name, **more}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, (do, name, answer)
        return answer

    def open(self, name: str, target: tuple[str, int], own: int = 0) -> int:
        """Returns the port that leads to the target."""
        return self.order("open", name, host=target[0], port=target[1], own=own)["port"]

    def cut(self, name: str, breaks: bool = False, pids: list[int] | None = None) -> None:
        self.order("cut", name, breaks=breaks, pids=pids)

    def mend(self, name: str) -> None:
        self.order("mend", name)

    def tap(self, name: str) -> None:
        """Keeps what passes on the way to the target, from now on."""
        self.order("tap", name)

    def tapped(self, name: str) -> bytes:
        return self.order("tapped", name)["seen"].encode("latin-1")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
