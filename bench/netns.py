"""A network of two: a server's and a client's namespace, and a link of a given rate between them. Linux, root, iproute2.

Nothing of it has a name on the machine or touches its own network. Each namespace lives for as long as a ``cat`` in it, which ends
when its stdin does: when this process is gone, however it went, so is the link.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from types import TracebackType

_SERVER, _CLIENT = "10.203.0.1", "10.203.0.2"
_DEVICE = "wire0"
BURST_SECONDS = 0.001
"""What may pass at once, as time at the rate: 125 kB at 1 Gbit/s, where packets not segmented yet have up to 64 KiB."""
_QUEUE_SECONDS = 0.01
"""What a switch would hold back before it drops."""


class LinkError(Exception):
    """Why there is no link here: a reason for the reader."""


class Link:
    """Two namespaces and a veth pair, until closed. Unshaped at first.

    Attributes:
        server_address: Where a server in its namespace listens.

    Raises:
        LinkError: The machine cannot have one.
    """

    server_address = _SERVER

    def __init__(self) -> None:
        _check_machine()
        self._shaped = False
        self._holders: list[subprocess.Popen[bytes]] = []
        try:
            server, client = self._hold(), self._hold()
            self.server = _enter(server)
            self.client = _enter(client)
            _run(self.server, f"ip link add {_DEVICE} type veth peer name {_DEVICE} netns {client}")
            for side, address in ((self.server, _SERVER), (self.client, _CLIENT)):
                _run(side, f"ip address add {address}/30 dev {_DEVICE}")
                _run(side, f"ip link set {_DEVICE} up")
                _run(side, "ip link set lo up")
        except BaseException:
            self.close()
            raise

    def _hold(self) -> int:
        """A new namespace. Returns the id of the process that holds it."""
        holder = subprocess.Popen(
            ["unshare", "--net", "cat"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._holders.append(holder)
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        # Once the line comes back, the namespace is there.
        with suppress(BrokenPipeError):
            holder.stdin.write(b"\n")
        if not holder.stdout.readline():
            said = holder.stderr.read().decode().strip().splitlines()
            raise LinkError(f"no network namespace can be made: {said[0] if said else 'unshare failed'}")
        return holder.pid

    def shape(self, bits_per_second: float | None) -> None:
        """Hold both directions to a rate, or to none.

        A token bucket alone, without delay: netem, which adds one, is missing from many kernels, and the fraction of a millisecond
        of a local network is nothing beside a transfer.

        Raises:
            LinkError: The kernel refuses.
        """
        for side in (self.server, self.client):
            if self._shaped:
                _run(side, f"tc qdisc delete dev {_DEVICE} root")
            if bits_per_second is not None:
                burst = int(bits_per_second * BURST_SECONDS / 8)
                _run(
                    side,
                    f"tc qdisc add dev {_DEVICE} root tbf rate {bits_per_second:.0f}bit burst {burst}b "
                    f"latency {_QUEUE_SECONDS * 1e3:g}ms",
                )
        self._shaped = bits_per_second is not None

    def received_bytes(self) -> int:
        """Bytes that reached the client since the link was made, with some of the packets' heads (0.1 %)."""
        shown = json.loads(_run(self.client, f"ip -json -statistics link show dev {_DEVICE}"))
        return int(shown[0]["stats64"]["rx"]["bytes"])

    def close(self) -> None:
        """Remove it; processes that are still in there lose their network once they end."""
        for holder in self._holders:
            for stream in (holder.stdin, holder.stdout, holder.stderr):
                if stream is not None:
                    stream.close()
            holder.wait()
        self._holders = []

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_machine() -> None:
    if not sys.platform.startswith("linux"):
        raise LinkError("network namespaces are Linux's")
    if os.geteuid() != 0:
        raise LinkError("making network namespaces takes root")
    missing = [tool for tool in ("ip", "tc", "unshare", "nsenter") if shutil.which(tool) is None]
    if missing:
        raise LinkError(f"{' and '.join(missing)} not found (packages iproute2, util-linux)")


def _enter(pid: int) -> tuple[str, ...]:
    """What to put before a command that is to run in the namespace of ``pid``."""
    return ("nsenter", f"--net=/proc/{pid}/ns/net")


def _run(side: tuple[str, ...], command: str) -> str:
    done = subprocess.run([*side, *command.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise LinkError(f"'{command}' failed: {said[-1] if said else done.returncode}")
    return done.stdout
