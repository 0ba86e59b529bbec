"""nginx in front of several servers: plain round robin, as in docs/scaling.md."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from programs import wait_for
from server import free_port

# A server that does not answer is left out for a second; a request that was sent to it is not
# repeated, unless it is one that may be (GET, PUT, DELETE).
CONFIG = """
{user}
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;

    upstream heddle {{
{servers}
        keepalive 64;
    }}

    server {{
        listen 127.0.0.1:{port} backlog=1024;
        client_max_body_size 64m;            # as max_body

        location / {{
            proxy_pass             http://heddle;
            proxy_http_version     1.1;
            proxy_set_header       Connection "";
            proxy_set_header       Host $http_host;
            proxy_set_header       X-Forwarded-For $remote_addr;
            proxy_connect_timeout  2s;
            proxy_next_upstream    error timeout;
            proxy_buffering        off;      # send events immediately
            proxy_cache            off;
            gzip                   off;
            proxy_read_timeout     1h;       # waits for runs; streams have heartbeats
            proxy_send_timeout     1h;
        }}
    }}
}}
"""


class Nginx:
    def __init__(self, ports: list[int]):
        self.ports, self.port = ports, free_port()
        self.process: subprocess.Popen | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="heddle-nginx-"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Nginx:
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        assert program, "nginx is not installed: scripts/install-deps test"
        servers = "\n".join(f"        server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for port in self.ports)
        file = self.folder / "nginx.conf"
        # As root, nginx would start its workers as another user, who may not write into the folder.
        user = "user root;" if os.getuid() == 0 else ""
        file.write_text(CONFIG.format(user=user, folder=self.folder, servers=servers, port=self.port))
        with open(self.folder / "log", "wb") as log:
            # -e: the error log until the configuration is read
            self.process = subprocess.Popen(
                [program, "-c", file, "-p", self.folder, "-e", self.folder / "error.log"], stdout=log, stderr=log
            )
        wait_for(self.answers, 60, "nginx")
        return self

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True
        return False

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)
