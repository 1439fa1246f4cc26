"""The data planes of this user on this host: origin, process and nonce, in a folder that only this user can read.

A data plane that starts writes down its origin and a nonce. A consumer that is given a URL of such an origin asks the server
there to prove that it knows the nonce, before it sends the token: so servers of one user work together without configuration,
and no other process on loopback gets anything. An entry is only believed while the process that wrote it lives; a file left by a
killed process is harmless, and is removed by the next data plane that starts.
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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows: a second worker is not noticed there
    fcntl = None  # type: ignore[assignment]

_MAX_ENTRY_BYTES: Final = 4096
_SUFFIX: Final = ".json"
CHALLENGE_CHARS: Final = 64
"""Hexadecimal characters of a challenge: 256 random bits."""


@dataclass(frozen=True)
class Registration:
    """One data plane as its user's other processes know it.

    Attributes:
        origin: ``scheme://host:port`` that it answers on.
        pid: Its process.
        started: When that process started, in clock ticks since boot; tells a reused process id apart.
        nonce: Secret that it proves to know. Hexadecimal; absent from ``repr``.
    """

    origin: str
    pid: int
    started: int
    nonce: str = field(repr=False)

    def is_alive(self) -> bool:
        """Whether the process that wrote this still runs."""
        return _started(self.pid) == self.started

    def prove(self, challenge: str) -> str:
        """What a server that knows the nonce answers to ``challenge``: HMAC-SHA256 over challenge and origin, hexadecimal."""
        message = f"framewire registry v1\n{challenge}\n{self.origin}".encode()
        return hmac.new(bytes.fromhex(self.nonce), message, hashlib.sha256).hexdigest()

    def accepts(self, challenge: str, proof: str) -> bool:
        """Whether ``proof`` answers ``challenge``; takes the same time either way."""
        return proof.isascii() and hmac.compare_digest(self.prove(challenge), proof)


class Claim:
    """This process's hold on an advertised URL; the kernel ends it with the process, however that ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self.descriptor, self._users = path, descriptor, 1

    def share(self) -> Claim:
        """One more data plane of this process under the same URL."""
        self._users += 1
        return self

    def release(self) -> None:
        """Give it up, unless another data plane of this process shares it."""
        with _CLAIMS_LOCK:
            self._users -= 1
            if not self._users:
                del _CLAIMS[self._path]
                os.close(self.descriptor)


_CLAIMS: Final[dict[Path, Claim]] = {}
_CLAIMS_LOCK: Final = threading.Lock()


# Every function below takes ``folder``, in place of the folder that follows from the user id.


def new_challenge() -> str:
    """A fresh challenge."""
    return secrets.token_hex(CHALLENGE_CHARS // 2)


def is_challenge(text: str) -> bool:
    """Whether a server should answer ``text``: only the exact form, so that it signs nothing else."""
    return len(text) == CHALLENGE_CHARS and set(text) <= set("0123456789abcdef")


def register(origin: str, *, folder: str | None = None) -> Registration | None:
    """Write this process's entry for ``origin``; None where the folder cannot be had, and consumers must be configured."""
    home = _folder(folder, create=True)
    if home is None:
        return None
    entry = Registration(origin, os.getpid(), _started(os.getpid()), secrets.token_hex(32))
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
        os.replace(name, home / _file_name(origin))
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
                (home / _file_name(entry.origin)).unlink()


def lookup(origin: str, *, folder: str | None = None) -> Registration | None:
    """The live entry for ``origin``, or None. It is a claim: see :meth:`Registration.accepts`."""
    home = _folder(folder, create=False)
    entry = None if home is None else _read(home / _file_name(origin))
    return entry if entry is not None and entry.origin == origin and entry.is_alive() else None


def claim(url: str, *, folder: str | None = None) -> tuple[Claim | None, int | None]:
    """Hold ``url`` as the address that this process alone publishes under.

    Returns:
        The claim, and None; or None and the process that holds it; or None twice where the folder cannot be had.
    """
    home = _folder(folder, create=True)
    if home is None or fcntl is None:
        return None, None
    path = home / (_file_name(url).removesuffix(_SUFFIX) + ".claim")
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
    """Every live entry of this user."""
    home = _folder(folder, create=False)
    for path in sorted(home.glob("*" + _SUFFIX)) if home is not None else ():
        entry = _read(path)
        if entry is not None and entry.is_alive():
            yield entry


def _folder(chosen: str | None, *, create: bool) -> Path | None:
    """The runtime folder: mode 0700, this user's, and no link; anything else is not used.

    It follows from the user id alone, not from ``XDG_RUNTIME_DIR`` or ``TMPDIR``: MCP hosts start servers with a few variables
    of the environment, so two servers of one user would look in different places.
    """
    session = Path(f"/run/user/{os.geteuid()}")
    folder = (
        Path(chosen)
        if chosen
        else session / "framewire"
        if session.is_dir()
        else Path(f"/tmp/framewire-{os.geteuid()}")
    )
    try:
        if create:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    good = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return folder if good else None


def _file_name(origin: str) -> str:
    return hashlib.sha256(origin.encode()).hexdigest()[:32] + _SUFFIX


def _read(path: Path) -> Registration | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
        raw = json.loads(os.read(descriptor, _MAX_ENTRY_BYTES))
        bytes.fromhex(raw["nonce"])
        return Registration(str(raw["origin"]), int(raw["pid"]), int(raw["started"]), str(raw["nonce"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        os.close(descriptor)


def _remove_stale(home: Path) -> None:
    for path in home.glob("*" + _SUFFIX):
        entry = _read(path)
        if entry is not None and not entry.is_alive():
            path.unlink(missing_ok=True)


def _started(pid: int) -> int:
    """Start of a process in clock ticks since boot; 0 where the system does not tell, -1 where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The second field is the program's name in parentheses, and may hold spaces and parentheses itself.
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except OSError:
        return 0
    return 0 if not Path("/proc/self/stat").exists() else -1
