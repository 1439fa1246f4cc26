"""Storages for the bytes of a body: the heap, sealed memory files that other processes can map, and disk."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from framewire.arrow import write
from framewire.errors import NoRoomError
from framewire.host import memfd


@dataclass
class StoredBytes:
    """One body's bytes.

    Attributes:
        buffer: The bytes; the memory behind them lives as long as any view of it.
        fd: Descriptor of the file behind them, if there is one.
        cold: Whether reading them may wait for a disk.
        shared: Whether another process may map ``fd``.
    """

    buffer: pa.Buffer
    fd: int | None = None
    cold: bool = False
    shared: bool = False

    def location(self) -> memfd.Location | None:
        """Where another process of this user can map the bytes, or None when it cannot."""
        return memfd.locate(self.fd) if self.shared and self.fd is not None else None

    def close(self) -> None:
        """Close the descriptor; mappings live as long as views of them."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class Storage(Protocol):
    """Somewhere to write a body to. Thread-safe."""

    def write(self, parts: Iterable[memoryview], nbytes: int) -> StoredBytes:
        """Copy ``parts`` into one buffer.

        Args:
            parts: The bytes, in order.
            nbytes: Their sum.

        Raises:
            NoRoomError: They do not fit after all.
        """
        ...


class Heap:
    """This process's memory."""

    def write(self, parts: Iterable[memoryview], nbytes: int) -> StoredBytes:
        """See ``Storage.write``."""
        return StoredBytes(write.gather(parts, nbytes))


class SealedMemory:
    """Sealed memory files, for bodies that a consumer on this host may map; the heap for all others.

    Args:
        max_files: Most files at once; the descriptors beyond are left to sockets.
    """

    def __init__(self, max_files: int | None = None) -> None:
        self._max_files = memfd.descriptor_budget() if max_files is None else max_files
        self._open = threading.Semaphore(max(self._max_files, 0))
        self._heap = Heap()

    def write(self, parts: Iterable[memoryview], nbytes: int) -> StoredBytes:
        """See ``Storage.write``. Falls back to the heap without a descriptor or the feature: sharing is never worth a failure."""
        parts = tuple(parts)
        if nbytes < memfd.MIN_BYTES or not self._open.acquire(blocking=False):
            return self._heap.write(parts, nbytes)
        fd = -1
        try:
            fd = memfd.create(parts)
            return _Counted(memfd.view(fd), fd, shared=True, count=self._open)
        except OSError:
            if fd >= 0:
                os.close(fd)
            self._open.release()
            return self._heap.write(parts, nbytes)


class _Counted(StoredBytes):
    """Bytes whose descriptor is one of a limited number."""

    def __init__(self, buffer: pa.Buffer, fd: int, *, shared: bool, count: threading.Semaphore) -> None:
        super().__init__(buffer, fd, shared=shared)
        self._count = count

    def close(self) -> None:
        """Close the descriptor and let another body have it."""
        if self.fd is not None:
            super().close()
            self._count.release()


class Disk:
    """Unnamed files in a folder: the kernel reclaims them when the process dies, however it dies.

    Args:
        folder: Where; the system's temporary folder when None.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder

    def write(self, parts: Iterable[memoryview], nbytes: int) -> StoredBytes:
        """See ``Storage.write``. The blocks are claimed before the first byte is written."""
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                _claim(file.fileno(), nbytes)
                memfd.write_all(file.fileno(), parts)
                fd = os.dup(file.fileno())
            try:
                return StoredBytes(memfd.view(fd), fd, cold=True)
            except BaseException:
                os.close(fd)
                raise
        except OSError as exc:
            raise NoRoomError(
                f"The body could not be spilled to disk: {exc.strerror or type(exc).__name__}.",
                hint="Free the disk, or set FRAMEWIRE_SPILL_DIR to a folder with room.",
            ) from exc


def _claim(fd: int, nbytes: int) -> None:
    if nbytes and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as exc:
            # Some file systems cannot; on them a full disk shows while writing.
            if exc.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
