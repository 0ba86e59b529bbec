#!/usr/bin/env python3
"""A worker of the runtime protocol (docs/runtime.md) in the standard library alone.

It runs no graphs: it answers from a table, or misbehaves on purpose, so that the server can be tested
without LangGraph. Two ways to use it:

As a program, `fake_worker.py [TABLE]`, where TABLE is a JSON file, or JSON text in $FAKE_WORKER:

    {"hello": {"version": "9.9.9"},          members of hello that replace the defaults
     "ready": {"graphs": {"chat": {"structure": null}}},
     "start": "exit",                        an action instead of starting (see START)
     "ops": {"authenticate": {"answer": {"user": {"identity": "ada"}}},
             "run:chat": [{"piece": {"mode": "values", "ns": ""}, "blobs": ["{}"]},
                          {"answer": {"status": "done"}, "blobs": ["{}"]}],
             "run:bad": {"do": "exit"}}}

An op is looked up with its graph (`run:chat`), then alone (`run`). Its steps run in order:
`piece`, `answer` and `error` send that head, with `blobs` (texts); `do` is one of Steps; `call` calls the
server and keeps the response, and `"answer": "$last"` sends it on; `"$beats"` sends the
lease and the number of signs of life. A call whose head has `steps` runs those.

As a module: Worker with functions for ops:

    worker = Worker()

    @worker.op("authenticate")
    def authenticate(call):
        if "x-key" not in call.head["headers"]:
            raise Refusal("HTTPException", "who are you?", status=401)
        return {"user": {"identity": "ada"}}

    worker.run()

A function gets a Call (head, blobs, text(name), piece(), is_cancelled, is_held) and returns the head of the response, or
(head, blobs), or None for {}. Each call has a thread, so a function may wait, and call the server: worker.ask(head, blobs).
"""

import json
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback

CALL, ANSWER, ERROR, PIECE, CANCEL, HOLD, GO = range(1, 8)
VERSION = os.environ.get("HEDDLE_RUNTIME_VERSION", "0.1.0")
VERY_LONG = 3600


class Refusal(Exception):
    """Raised by an op: becomes the ERROR response."""

    def __init__(self, type, message, **more):
        super().__init__(message)
        self.head = {"type": type, "message": message, **more}


class ServerError(Exception):
    """The server answered a call with an ERROR."""

    def __init__(self, head):
        super().__init__(head.get("message", ""))
        self.head = head
        self.code = head.get("code")


def encode(type, id, head, blobs=()):
    """The bytes of a frame. `head` is an object, or bytes that are sent unchanged."""
    if not isinstance(head, bytes):
        head = json.dumps(head, separators=(",", ":")).encode()
    blobs = [blob.encode() if isinstance(blob, str) else bytes(blob) for blob in blobs]
    lengths = struct.pack(f"<{len(blobs)}I", *map(len, blobs))
    rest = struct.pack("<BBHII", type, 0, len(blobs), id, len(head)) + lengths + head + b"".join(blobs)
    return struct.pack("<I", len(rest)) + rest


def decode(body):
    """(type, id, head, blobs) of the bytes after a frame's length."""
    type, _, count, id, head_len = struct.unpack_from("<BBHII", body)
    lengths = struct.unpack_from(f"<{count}I", body, 12)
    at = 12 + 4 * count
    head = json.loads(body[at : at + head_len] or b"{}")
    at += head_len
    blobs = []
    for length in lengths:
        blobs.append(body[at : at + length])
        at += length
    return type, id, head, blobs


class Call:
    """A call of the server."""

    def __init__(self, worker, id, head, blobs):
        self.worker, self.id, self.head, self.blobs = worker, id, head, blobs
        self.cancelled = threading.Event()
        self.go = threading.Event()
        self.go.set()

    @property
    def op(self):
        return self.head.get("op")

    @property
    def is_cancelled(self):
        return self.cancelled.is_set()

    @property
    def is_held(self):
        return not self.go.is_set()

    def text(self, name):
        """The value of a member, which may be in a blob."""
        value = self.head.get(name)
        if isinstance(value, dict) and set(value) == {"$blob"}:
            return json.loads(self.blobs[value["$blob"]])
        return value

    def piece(self, head, blobs=()):
        self.worker.send(PIECE, self.id, head, blobs)


class Worker:
    def __init__(self, runtime="python", ready=None, hello=None):
        self.runtime = os.environ.get("FAKE_WORKER_RUNTIME", runtime)
        self.ready = {"graphs": {}} if ready is None else ready
        self.hello = hello or {}
        self.ops = {"ping": lambda call: {}, "drain": self._drain}
        self.socket = None
        self.project = None
        self.calls = {}
        self.answers = {}
        self.beats, self.lease_ms = 0, None
        self.last_id = 0
        self.lock = threading.Lock()

    # ---- for users --------------------------------------------------------

    def op(self, name):
        def add(function):
            self.ops[name] = function
            return function

        return add

    def ask(self, head, blobs=(), timeout=60):
        """Calls the server and waits: (head, blobs) of its response. Not on the reading thread."""
        arrived = threading.Event()
        with self.lock:
            self.last_id += 1
            id = self.last_id
            self.answers[id] = entry = [arrived, None, []]
        self.send(CALL, id, head, blobs)
        if not arrived.wait(timeout):
            raise TimeoutError(f"no answer to {head.get('op')}")
        type, answer, answer_blobs = entry[1]
        if type == ERROR:
            raise ServerError(answer)
        return answer, answer_blobs

    def send(self, type, id, head, blobs=()):
        self.send_bytes(encode(type, id, head, blobs))

    def send_bytes(self, data):
        with self.lock:
            self.socket.sendall(data)

    def run(self):
        """Connects, sends hello, and serves until the server closes the connection."""
        self.connect()
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        answer, _ = self.ask({"op": "hello", **self.hello_members()})
        self.project = answer["project"]
        self.lease_ms = answer.get("lease_ms")
        if self.ready is not False:
            ready = self.ready(self) if callable(self.ready) else self.ready
            self.ask({"op": "ready", **ready})
        reader.join()

    # ---- the rest ---------------------------------------------------------

    def hello_members(self):
        usual = {
            "protocol": 1,
            "runtime": self.runtime,
            "version": VERSION,
            "language": sys.version.split()[0],
            "langgraph": "1.0.0",
            "pid": os.getpid(),
            "key": os.environ.get("HEDDLE_RUNTIME_KEY", ""),
        }
        return {**usual, **self.hello}

    def connect(self):
        path = os.environ.get("HEDDLE_RUNTIME_SOCKET")
        if path:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(path)
            return
        host, port = os.environ["HEDDLE_RUNTIME_ADDRESS"].rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _receive(self, size):
        parts = []
        while size > 0:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _read(self):
        try:
            while True:
                length = self._receive(4)
                body = self._receive(struct.unpack("<I", length)[0]) if length else None
                if not body:
                    break
                self._take(*decode(body))
        except OSError:
            pass
        if self.project is not None:
            os._exit(0)  # the server is gone, and the process ends with all calls
        for entry in list(self.answers.values()):
            entry[1] = (ERROR, {"type": "ConnectionError", "message": "the server closed the connection"}, [])
            entry[0].set()

    def _take(self, type, id, head, blobs):
        if type == CALL:
            call = self.calls[id] = Call(self, id, head, blobs)
            threading.Thread(target=self._work, args=(call,), daemon=True).start()
        elif type in (ANSWER, ERROR):
            entry = self.answers.pop(id)
            entry[1] = (type, head, blobs)
            entry[0].set()
        elif type == PIECE:
            self.answers[id][2].append((head, blobs))
        elif id == 0:
            self.beats += 1
        elif id in self.calls:
            call = self.calls[id]
            {CANCEL: call.cancelled.set, HOLD: call.go.clear, GO: call.go.set}[type]()

    def find(self, call):
        return self.ops.get(f"{call.op}:{call.head.get('graph')}") or self.ops.get(call.op)

    def _work(self, call):
        type, head, blobs = ANSWER, {}, ()
        try:
            function = self.find(call)
            if not function:
                raise Refusal("NotImplementedError", f"no operation {call.op}", code="invalid")
            result = function(call)
            if result is NOTHING:
                return
            head, blobs = result if isinstance(result, tuple) else (result or {}, ())
        except Refusal as refusal:
            type, head = ERROR, refusal.head
        except ServerError as error:
            type, head = ERROR, error.head
        except Exception as error:
            type, head = (
                ERROR,
                {"type": error.__class__.__name__, "message": str(error), "traceback": traceback.format_exc()},
            )
        self.calls.pop(call.id, None)
        try:
            self.send(type, call.id, head, blobs)
        except OSError:
            pass

    def _drain(self, call):
        """Waits for all other calls, answers, and ends."""
        while any(other is not call for other in list(self.calls.values())):
            time.sleep(0.01)
        self.send(ANSWER, call.id, {})
        os._exit(0)


NOTHING = object()  # returned by an op: no response is sent


def wait_cancelled(call, step):
    call.cancelled.wait(VERY_LONG)


def wait_forever(call, step):
    time.sleep(VERY_LONG)


def stop(call, step):
    """Hangs: stops the whole process."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(VERY_LONG)  # the signal may take a moment to stop this thread


def flood(call, step):
    """Sends `count` chunks with blobs of `size` bytes as fast as possible, ignoring the server."""
    blob = b"x" * step.get("size", 65536)
    for number in range(step.get("count", 1000)):
        call.piece({"mode": "custom", "ns": "", "number": number}, [blob])


def stream(call, step):
    """As flood, but obeys HOLD."""
    blob = b"x" * step.get("size", 16)
    for number in range(step.get("count", 1000)):
        call.go.wait(VERY_LONG)
        call.piece({"mode": "custom", "ns": "", "number": number}, [blob])


def grow(call, step):
    """Allocates `bytes` more memory."""
    call.worker.ballast = bytearray(b"x") * step.get("bytes", 1 << 28)


def echo(call, step):
    call.worker.calls.pop(call.id, None)
    call.worker.send(ANSWER, call.id, {k: v for k, v in call.head.items() if k != "steps"}, call.blobs)


def identity(call, step):
    """Answers with its process id."""
    call.worker.calls.pop(call.id, None)
    call.worker.send(ANSWER, call.id, {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)})


def wait_file(call, step):
    while not os.path.exists(step["path"]):
        time.sleep(0.01)


def touch_file(call, step):
    open(step["path"], "a").close()


STEPS = {
    "cancelled": wait_cancelled,  # continues when the call is cancelled
    "never": wait_forever,
    "stop": stop,
    "exit": lambda call, step: os._exit(step.get("code", 3)),
    "kill": lambda call, step: os.kill(os.getpid(), signal.SIGKILL),
    "close": lambda call, step: call.worker.socket.shutdown(socket.SHUT_RDWR),
    "garbage": lambda call, step: call.worker.send_bytes(b"\xff" * step.get("size", 64)),
    "bytes": lambda call, step: call.worker.send_bytes(bytes.fromhex(step["hex"])),
    "stray": lambda call, step: call.worker.send(ANSWER, 4000000000, {}),
    "print": lambda call, step: print("\n".join([step["text"]] * step.get("times", 1)), flush=True),
    "flood": flood,
    "stream": stream,
    "grow": grow,
    "echo": echo,
    "identity": identity,
    "wait_file": wait_file,
    "touch_file": touch_file,
    "sleep": lambda call, step: time.sleep(step["seconds"]),
}

START = {
    "exit": lambda: os._exit(3),
    "hang": lambda: time.sleep(VERY_LONG),  # never connects
    "silent": None,  # connects and sends nothing
    "garbage": None,
    "not_ready": None,  # sends hello, never ready
}


def carry_out(call, steps):
    last = ({}, [])
    for step in steps if isinstance(steps, list) else [steps]:
        blobs = step.get("blobs", ())
        if "piece" in step:
            call.piece(step["piece"], blobs)
        elif "call" in step:
            last = call.worker.ask({"call": call.id, **step["call"]}, blobs)
        elif "error" in step:
            raise Refusal(**{"type": "Error", "message": "", **step["error"]})
        elif step.get("answer") == "$beats":
            return {"lease_ms": call.worker.lease_ms, "beats": call.worker.beats}, blobs
        elif "answer" in step:
            return last if step["answer"] == "$last" else (step["answer"], blobs)
        else:
            STEPS[step["do"]](call, step)
            if step["do"] in ("echo", "identity"):
                return NOTHING
    return {}


class TableWorker(Worker):
    def __init__(self, table):
        super().__init__(table.get("runtime", "python"), table.get("ready"), table.get("hello"))
        self.table = table
        for name, steps in table.get("ops", {}).items():
            self.ops[name] = lambda call, steps=steps: carry_out(call, steps)

    def find(self, call):
        if "steps" in call.head:
            return lambda call: carry_out(call, call.head["steps"])
        return super().find(call)

    def run(self):
        start = self.table.get("start")
        if start and START[start]:
            START[start]()
        if start == "not_ready":
            self.ready = False
        if start in ("silent", "garbage"):
            self.connect()
            if start == "garbage":
                self.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
            time.sleep(VERY_LONG)
        super().run()


def main():
    text = os.environ.get("FAKE_WORKER", "{}")
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            text = file.read()
    TableWorker(json.loads(text)).run()


if __name__ == "__main__":
    try:
        main()
    except (ServerError, OSError) as error:
        sys.exit(f"fake worker: {error}")
