"""Runs a command while a server runs, whose address is in HEDDLE_API_URL.

    python3 tests/api/lib/with_server.py node --test …

Exits with the command's status, or with 1 if the server did not stop cleanly.
"""

import os
import subprocess
import sys

from server import Server, is_peer

# Heartbeats as often as possible: clients must not see them.
options = [] if is_peer() else ["--stream-heartbeat", "1"]
with Server.create(options=options) as server:
    status = subprocess.run(sys.argv[1:], env={**os.environ, "HEDDLE_API_URL": server.url}).returncode
    if status != 0:
        print(server.tail(20), file=sys.stderr)
sys.exit(status)
