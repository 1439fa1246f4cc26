"""uvicorn as its users start it, in a thread."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import uvicorn


def serve(app: Any, host: str = "127.0.0.1") -> str:
    """Serve ``app`` on ``host`` until the process ends. Returns its base URL."""
    sock = socket.socket()
    sock.bind((host, 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True).start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline:
            raise TimeoutError("uvicorn did not start")
        time.sleep(0.01)
    return f"http://{host}:{sock.getsockname()[1]}"
