"""The data planes of this user on this host: origin, process and nonce, in a folder that only this user can read.

A data plane registers its origin and a nonce when it starts. A consumer that is given a URL of such an origin asks the server
there to prove that it knows the nonce, before it sends the token: so servers of one user work together without configuration,
and no other process on loopback gets anything. An entry is valid only while the process that wrote it lives; a file left by a
killed process is harmless, and is removed by the next data plane that starts.

A fetch reads an entry's file once for each version of it. Whether its process lives, and whether the folder and the file are
still this user's alone, is asked at every fetch.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from framewire.host.forks import in_child

try:
    import fcntl
except ImportError:  # Windows: a second worker is not noticed there
    fcntl = None  # type: ignore[assignment]

_MAX_ENTRY_BYTES: Final = 4096
_SUFFIX: Final = ".json"
CHALLENGE_CHARS: Final = 64
"""Hexadecimal characters of a challenge: 256 random bits."""
_SETTLED_NS: Final = 2_000_000_000
"""A file that changed more recently is read again: two changes within one tick of the file system's clock look the same."""
_MAX_REMEMBERED: Final = 256


@dataclass(frozen=True)
class Registration:
    """One data plane's entry, as other processes of its user read it.

    Attributes:
        origin: ``scheme://host:port`` that it answers on.
        pid: Its process.
        started: When that process started, in clock ticks since boot; distinguishes a reused process id.
        nonce: Secret that the server proves to know. Hexadecimal; absent from ``repr``.
    """

    origin: str
    pid: int
    started: int
    nonce: str = field(repr=False)

    def is_alive(self) -> bool:
        """Whether the process that wrote this still runs."""
        return _started(self.pid) == self.started

    def prove(self, challenge: str) -> str:
        """Return the proof for ``challenge``: HMAC-SHA256 with the nonce over challenge and origin, hexadecimal."""
        message = f"framewire registry v1\n{challenge}\n{self.origin}".encode()
        return hmac.new(bytes.fromhex(self.nonce), message, hashlib.sha256).hexdigest()

    def accepts(self, challenge: str, proof: str) -> bool:
        """Whether ``proof`` answers ``challenge``; takes the same time either way."""
        return proof.isascii() and hmac.compare_digest(self.prove(challenge), proof)


class Claim:
    """This process's exclusive use of an advertised URL; the kernel ends it with the process, however that ends."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path, self.descriptor, self._users = path, descriptor, 1

    def share(self) -> Claim:
        """Count one more data plane of this process under the same URL."""
        self._users += 1
        return self

    def release(self) -> None:
        """Release it, unless another data plane of this process shares it."""
        with _CLAIMS_LOCK:
            self._users -= 1
            if not self._users and _CLAIMS.get(self._path) is self:
                del _CLAIMS[self._path]
                os.close(self.descriptor)


_CLAIMS: Final[dict[str, Claim]] = {}
_CLAIMS_LOCK = threading.Lock()


def _forget_claims() -> None:
    """In a forked child: a record lock is its parent's alone, and another thread of the parent may hold the mutex for ever."""
    global _CLAIMS_LOCK
    _CLAIMS_LOCK = threading.Lock()
    for held in _CLAIMS.values():
        os.close(held.descriptor)
    _CLAIMS.clear()


in_child(_forget_claims)


# Functions below take ``folder`` to replace the folder that follows from the user id.


def new_challenge() -> str:
    """Return a fresh challenge."""
    return secrets.token_hex(CHALLENGE_CHARS // 2)


def is_challenge(text: str) -> bool:
    """Whether ``text`` has the exact form of a challenge; a server signs nothing else."""
    return len(text) == CHALLENGE_CHARS and set(text) <= set("0123456789abcdef")


def register(origin: str, *, folder: str | None = None) -> Registration | None:
    """Write this process's entry for ``origin``; None where that fails, and consumers must be configured."""
    home = _folder(folder, create=True)
    started = _started(os.getpid())
    if home is None or started < 0:
        return None
    entry = Registration(origin, os.getpid(), started, secrets.token_hex(32))
    with contextlib.suppress(OSError):
        _remove_stale(home)
    payload = {"origin": entry.origin, "pid": entry.pid, "started": entry.started, "nonce": entry.nonce}
    try:
        # mkstemp gives mode 0600; the rename makes the entry appear whole or not at all.
        descriptor, name = tempfile.mkstemp(dir=home, prefix=".new-")
    except OSError:
        return None
    try:
        try:
            os.write(descriptor, json.dumps(payload).encode("ascii"))
        finally:
            os.close(descriptor)
        os.replace(name, _path(home, origin))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        return None
    return entry


def unregister(entry: Registration, *, folder: str | None = None) -> None:
    """Remove ``entry``, unless another process has taken its place."""
    home = _folder(folder, create=False)
    for _ in range(2):  # a call that fails once must not leave an entry for as long as the process lives
        if home is not None and lookup(entry.origin, folder=folder) == entry:
            with contextlib.suppress(OSError):
                os.unlink(_path(home, entry.origin))


def lookup(origin: str, *, folder: str | None = None) -> Registration | None:
    """Return the live entry for ``origin``, or None. The server there must still prove itself: :meth:`Registration.accepts`."""
    home = _folder(folder, create=False)
    entry = None if home is None else _read(_path(home, origin))
    return entry if entry is not None and entry.origin == origin and entry.is_alive() else None


def claim(url: str, *, folder: str | None = None) -> tuple[Claim | None, int | None]:
    """Claim ``url`` as the address that this process alone publishes under.

    Returns:
        The claim and None; or None and the process that holds it; or (None, None) where the folder cannot be used.
    """
    home = _folder(folder, create=True)
    if home is None or fcntl is None:
        return None, None
    path = _path(home, url, ".claim")
    with _CLAIMS_LOCK:
        # A record lock belongs to the process, and ends when any of its descriptors of the file is closed: so there is one.
        if path in _CLAIMS:
            return _CLAIMS[path].share(), None
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None, None
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as exc:
            held = exc.errno in (errno.EACCES, errno.EAGAIN)
            text = os.read(descriptor, 32) if held else b""
            os.close(descriptor)
            return None, int(text) if text.isdigit() else 0 if held else None
        _CLAIMS[path] = Claim(path, descriptor)
        return _CLAIMS[path], None


def entries(*, folder: str | None = None) -> Iterator[Registration]:
    """Iterate over the live entries of this user."""
    home = _folder(folder, create=False)
    for path in _entry_paths(home) if home is not None else ():
        entry = _read(path)
        if entry is not None and entry.is_alive():
            yield entry


def _folder(chosen: str | None, *, create: bool) -> str | None:
    """Return the runtime folder: mode 0700, this user's, not a link; None for anything else.

    It follows from the user id alone, not from ``XDG_RUNTIME_DIR`` or ``TMPDIR``: MCP hosts start servers with few of the
    environment's variables, so two servers of one user would look in different places.
    """
    user = os.geteuid()
    session = f"/run/user/{user}"
    folder = chosen or (f"{session}/framewire" if os.path.isdir(session) else f"/tmp/framewire-{user}")
    try:
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o700)
        info = os.lstat(folder)
    except OSError:
        return None
    return folder if stat.S_ISDIR(info.st_mode) and info.st_uid == user and not info.st_mode & 0o077 else None


def _path(home: str, url: str, suffix: str = _SUFFIX) -> str:
    return os.path.join(home, hashlib.sha256(url.encode()).hexdigest()[:32] + suffix)


def _entry_paths(home: str) -> list[str]:
    return [os.path.join(home, name) for name in sorted(os.listdir(home)) if name.endswith(_SUFFIX)]


_Version: TypeAlias = tuple[int, ...]
_REMEMBERED: Final[dict[str, tuple[_Version, Registration | None]]] = {}
"""By path: the version that was read last, and its entry. Each update is one operation on a dict, so threads need no lock."""


def _version(info: os.stat_result) -> _Version:
    """Identify a file's content and access: every write, rename, chmod and chown changes the result."""
    return (
        info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_mode, info.st_uid, info.st_size
    )  # fmt: skip


def _read(path: str) -> Registration | None:
    """Return the entry in a file as it is now; None unless it is a whole entry that only this user can read or write."""
    try:
        remembered = _REMEMBERED.get(path)
        if remembered is not None and remembered[0] == _version(os.lstat(path)):
            return remembered[1]
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Of the descriptor, not the path: the version belongs to what is read.
        info = os.fstat(descriptor)
        entry = _parse(info, descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if time.time_ns() - info.st_ctime_ns > _SETTLED_NS:
        if len(_REMEMBERED) >= _MAX_REMEMBERED:
            _REMEMBERED.clear()
        _REMEMBERED[path] = (_version(info), entry)
    return entry


def _parse(info: os.stat_result, descriptor: int) -> Registration | None:
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        return None
    text = os.read(descriptor, _MAX_ENTRY_BYTES)
    try:
        raw = json.loads(text)
        bytes.fromhex(raw["nonce"])
        return Registration(str(raw["origin"]), int(raw["pid"]), int(raw["started"]), str(raw["nonce"]))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _remove_stale(home: str) -> None:
    for path in _entry_paths(home):
        entry = _read(path)
        if entry is not None and not entry.is_alive():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _started(pid: int) -> int:
    """Start of a process in clock ticks since boot; 0 where the system does not tell, -1 where there is no such process."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The second field is the program's name in parentheses, and may hold spaces and parentheses itself.
            return int(os.read(descriptor, 4096).rpartition(b")")[2].split()[19])
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except OverflowError:
        return -1
    except OSError:
        return 0
    return 0 if not os.path.exists("/proc/self/stat") else -1
