"""Memory of processes, read from /proc, and the warming of the machine's own."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def status_bytes(field: str, pid: int | str = "self") -> int:
    """A field of /proc/PID/status (``VmRSS``, ``VmHWM``, ``RssAnon``) in bytes; 0 where the system does not say."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def rss_bytes(pid: int | str = "self") -> int:
    """Resident bytes now."""
    return status_bytes("VmRSS", pid)


def peak_rss_bytes(pid: int | str = "self") -> int:
    """Most resident bytes since the process started, or since :func:`reset_peak`."""
    return status_bytes("VmHWM", pid)


def reset_peak() -> None:
    """Start this process's peak afresh (Linux; elsewhere the peak stays that of its whole life)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def die_first() -> None:
    """Have the kernel end this process rather than another, should memory run out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def total_bytes() -> int:
    """This machine's memory."""
    return _PAGE * os.sysconf("SC_PHYS_PAGES")


def available_bytes() -> int:
    """What can be had without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return total_bytes() // 2


def touch(nbytes: int) -> None:
    """Write to every page of ``nbytes`` of fresh memory, then give it back."""
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        piece = b"\x01" * (1 << 20)
        for start in range(0, nbytes, len(piece)):
            area[start : start + len(piece)] = piece[: nbytes - start]


def warm(nbytes: int) -> None:
    """:func:`touch` in a process of its own.

    On virtual machines the first touch of a page that the host has not given yet costs ten times an ordinary fault
    (0.35 GB/s was seen), so whoever is measured first would pay for all. The host does not take such pages back soon.
    """
    code = f"import bench.memory; bench.memory.die_first(); bench.memory.touch({nbytes})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
