"""An MCP server whose tools start processes in every way that Python has. ``python forking_server.py stdio | PORT``."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import subprocess
import sys
import threading

from framewire import DataPlane, S2SPServer, Settings

server = S2SPServer("forks")
WAYS = ("pool", "terminate", "executor", "forkserver", "spawn", "run")


def square(i: int) -> int:
    return i * i


def _forever() -> None:
    threading.Event().wait()


@server.tool()
def pool(method: str = "fork") -> str:
    with multiprocessing.get_context(method).Pool(2) as workers:
        return str(sum(workers.map(square, range(4))))


@server.tool()
def forkserver() -> str:
    return pool("forkserver")


@server.tool()
def spawn() -> str:
    return pool("spawn")


@server.tool()
def terminate() -> str:
    """SIGTERM ends a child: -15."""
    child = multiprocessing.get_context("fork").Process(target=_forever)
    child.start()
    child.terminate()
    child.join(30)
    code = child.exitcode
    child.kill()
    child.join()
    return str(code)


@server.tool()
def executor() -> str:
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as workers:
        return str(sum(workers.map(square, range(4))))


@server.tool()
def run() -> str:
    return subprocess.run(["echo", "14"], capture_output=True, text=True, check=True).stdout.strip()


def _publish_under(url: str) -> None:
    with DataPlane(Settings(public_url=url)) as plane:
        plane.start(listen=False)


@server.tool()
def claim(url: str) -> str:
    """A child holds nothing of its parent's claims: the parent's URL is refused to it, as to any other process."""
    with DataPlane(Settings(public_url=url)):
        child = multiprocessing.get_context("fork").Process(target=_publish_under, args=(url,))
        child.start()
        child.join(30)
    return str(child.exitcode)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
