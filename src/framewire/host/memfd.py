"""Sealed bodies in anonymous files: one copy of a body that processes of the same user on one host can share.

A ``memfd`` is memory with a descriptor. Sealed against writing, shrinking and growing, it can be mapped by another process
through ``/proc/PID/fd/N`` without a copy and without the risk that it changes under its reader. The kernel frees it with the last
process that holds it. Linux only: elsewhere these functions return None or raise ``OSError``, and callers fall back.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
import resource
import stat
import sys
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

MIN_BYTES: Final = 1 << 20
"""Below this size a copy costs less than mapping."""

_SEALS: Final = (
    getattr(fcntl, "F_SEAL_SEAL", 1)
    | getattr(fcntl, "F_SEAL_SHRINK", 2)
    | getattr(fcntl, "F_SEAL_GROW", 4)
    | getattr(fcntl, "F_SEAL_WRITE", 8)
)
_HEADER: Final = re.compile(r"pid=(\d{1,10}), fd=(\d{1,10}), inode=(\d{1,19}), nbytes=(\d{1,19})", re.ASCII)
_MAX_PARTS: Final = 512
"""Views handed to one ``writev``: the kernel takes 1,024."""


@dataclass(frozen=True)
class Location:
    """Where another process finds a sealed body.

    Attributes:
        pid: Process that holds it.
        fd: Its descriptor there.
        inode: Inode number, against a descriptor that was closed and given out again.
        nbytes: Length.
    """

    pid: int
    fd: int
    inode: int
    nbytes: int

    def to_header(self) -> str:
        """Return the value of ``S2SP-Map`` in a response."""
        return f"pid={self.pid}, fd={self.fd}, inode={self.inode}, nbytes={self.nbytes}"

    @classmethod
    def from_header(cls, text: str) -> Location | None:
        """Parse that value; None for any other text."""
        match = _HEADER.fullmatch(text)
        return None if match is None else cls(*map(int, match.groups()))


def is_available() -> bool:
    """Whether this system has sealed memory files and a ``/proc`` to find them in."""
    return sys.platform == "linux" and hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")


@cache
def host_identity() -> str | None:
    """Return user, boot and process namespace: processes that share them can map each other's files. Not a secret."""
    if not is_available():
        return None
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{os.geteuid()}:{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return None


def descriptor_budget() -> int:
    """Return how many bodies may be kept this way: a quarter of the descriptor limit; the rest is for sockets."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft // 4, 0) if soft != resource.RLIM_INFINITY else 1 << 16


def write_all(fd: int, parts: Iterable[memoryview]) -> None:
    """Write every byte of ``parts`` to ``fd``, many views per call.

    Raises:
        OSError: As the system says (``ENOSPC``, ``EIO``, ...); the file is then incomplete.
    """
    waiting: list[memoryview] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) >= _MAX_PARTS:
            _drain(fd, waiting)
            waiting = []
    _drain(fd, waiting)


def _drain(fd: int, views: list[memoryview]) -> None:
    while views:
        written = os.writev(fd, views)
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if written:
            views[0] = views[0][written:]


def create(parts: Iterable[memoryview]) -> int:
    """Create a sealed file that holds ``parts``; return its descriptor, which the caller closes.

    Raises:
        OSError: No descriptor, no memory, or no such feature.
    """
    fd = os.memfd_create("framewire", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        write_all(fd, parts)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd


def locate(fd: int) -> Location:
    """Return the location by which another process opens ``fd`` of this one."""
    info = os.fstat(fd)
    return Location(os.getpid(), fd, info.st_ino, info.st_size)


def view(fd: int) -> pa.Buffer:
    """Map the file's bytes read-only; the mapping lives as long as the buffer and needs no descriptor of its own.

    Python's ``mmap`` keeps a copy of the descriptor, and Arrow's populates every page at once: 0.7 ms for a gigabyte that is in
    memory already.
    """
    size = os.fstat(fd).st_size
    if size == 0:
        return pa.py_buffer(b"")
    if not hasattr(mmap, "MAP_SHARED"):
        return pa.py_buffer(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
    mapping = _Mapping(fd, size)
    return pa.foreign_buffer(mapping.address, size, base=mapping)


class _Mapping:
    """Pages of a file, unmapped with the last buffer that is based on this."""

    def __init__(self, fd: int, size: int) -> None:
        libc = _libc()
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        if address is None or address == _MAP_FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self.address: int = address
        # Not __del__: at interpreter exit the module's names are gone.
        weakref.finalize(self, libc.munmap, ctypes.c_void_p(address), size).atexit = False


_MAP_FAILED: Final = ctypes.c_void_p(-1).value


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def open_sealed(location: Location) -> pa.Buffer | None:
    """Map another process's sealed body; None where any check fails.

    The path names a descriptor of a process that may have ended, or another user's, or another kind of file: a FIFO that
    blocks, a device. So it is opened read-only and non-blocking, and used only when it is a file of this user with the announced
    inode and size and every seal set.
    """
    if not is_available():
        return None
    try:
        fd = os.open(f"/proc/{location.pid}/fd/{location.fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        good = (
            stat.S_ISREG(info.st_mode)
            and info.st_uid == os.geteuid()
            and info.st_ino == location.inode
            and info.st_size == location.nbytes
            and fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS == _SEALS
        )
        return view(fd) if good else None
    except OSError:
        return None
    finally:
        os.close(fd)
