"""Settings: every environment variable of framewire, in one table, read once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from framewire import wire
from framewire.errors import SettingError
from framewire.host.urls import BASE_HINT, parse_base

_GIB: Final = 1 << 30
_OFF: Final = "off"
_AUTO: Final = "auto"


def _quarter_of_memory() -> int:
    """Return a quarter of this machine's memory, in bytes (1 GiB where the system does not say)."""
    try:
        return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4, 64 << 20)
    except (ValueError, OSError, AttributeError):
        return _GIB


def _peers(name: str, text: str) -> tuple[str, ...]:
    return tuple(_peer(name, part.strip()) for part in text.split(",") if part.strip())


def _peer(name: str, text: str) -> str:
    base = parse_base(text)
    if base is None:
        raise SettingError(f"{name} has an entry that is neither an origin nor a base URL.", hint=BASE_HINT)
    return text.removesuffix("/").removesuffix(base.prefix).lower() + base.prefix


def _positive(name: str, text: str) -> int:
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 0
    if value <= 0:
        raise SettingError(f"{name} is {text!r}.", hint="It takes a positive whole number.")
    return value


def _seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise SettingError(f"{name} is {text!r}.", hint="It takes a positive number of seconds.")
    return value


def _same_host(name: str, text: str) -> str:
    if text not in (_AUTO, _OFF):
        raise SettingError(f"{name} is {text!r}.", hint="It takes 'auto' or 'off'.")
    return text


def _codecs(name: str, text: str) -> tuple[str, ...]:
    codecs = () if text.strip().lower() == _OFF else _names(name, text)
    if not set(codecs) <= set(wire.CODECS):
        raise SettingError(
            f"{name} is {text!r}.", hint=f"It takes {' and '.join(wire.CODECS)}, the preferred first, or 'off'."
        )
    return codecs


def _public_url(name: str, text: str) -> str:
    base = parse_base(text)
    if base is None or base.port is None:
        # The value is not shown: it may hold a password.
        raise SettingError(
            f"{name} is not a URL that consumers can fetch from.",
            hint="It takes a URL such as https://data.example.org/prefix, without query or user name.",
        )
    return text.removesuffix("/")


def _text(name: str, text: str) -> str:
    return text


def _names(name: str, text: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class Settings:
    """Everything that can be configured. Constructor arguments win over environment variables.

    Attributes:
        public_url: Base of advertised URLs, for servers behind a proxy or in a container (``FRAMEWIRE_PUBLIC_URL``).
        allow_peers: Origins or base URLs that a consumer may fetch from (``FRAMEWIRE_ALLOW_PEERS``).
        trust_peers: Origins fetched without full validation (``FRAMEWIRE_TRUST_PEERS``).
        allowed_hosts: Further ``Host`` names that a data plane answers to (``FRAMEWIRE_ALLOWED_HOSTS``).
        runtime_dir: Folder of this user's registry of data planes (``FRAMEWIRE_RUNTIME_DIR``).
        same_host: ``auto`` maps bodies between processes of one host, ``off`` never does (``FRAMEWIRE_SAME_HOST``).
        codecs: Codecs that trusted peers on other hosts may compress with, the preferred first; worth switching off on links
            above 2.5 Gbit/s (``FRAMEWIRE_CODECS``; ``zstd,lz4``, or ``off``).
        memory_budget_bytes: Bodies held in memory, at most (``FRAMEWIRE_MEMORY_BUDGET_BYTES``; a quarter of memory).
        disk_budget_bytes: Bodies spilled to disk, at most (``FRAMEWIRE_DISK_BUDGET_BYTES``; 10 GiB).
        spill_dir: Folder for spilled bodies (``FRAMEWIRE_SPILL_DIR``; the system's temporary folder).
        ttl_seconds: Life of a handle (``FRAMEWIRE_TTL_SECONDS``; 600).
        max_body_bytes: Largest body that a consumer accepts, on the wire and expanded (``FRAMEWIRE_MAX_BODY_BYTES``; 8 GiB).
        max_selection_bytes: Largest scattered selection that a server materialises (``FRAMEWIRE_MAX_SELECTION_BYTES``; 256 MiB).
        max_connections: Connections that a data plane holds at once (``FRAMEWIRE_MAX_CONNECTIONS``; 2,048).
        drain_seconds: How long running transfers may go on once a data plane stops (``FRAMEWIRE_DRAIN_SECONDS``; 1.5).
        max_rows: Most rows that a consumer accepts (``FRAMEWIRE_MAX_ROWS``; 2^31).
        deadline_seconds: Time for one whole exchange (``FRAMEWIRE_DEADLINE_SECONDS``; 120).
    """

    public_url: str | None = None
    allow_peers: tuple[str, ...] = ()
    trust_peers: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    runtime_dir: str | None = None
    same_host: str = _AUTO
    codecs: tuple[str, ...] = wire.CODECS
    memory_budget_bytes: int = 0
    disk_budget_bytes: int = 10 * _GIB
    spill_dir: str | None = None
    ttl_seconds: float = 600.0
    max_body_bytes: int = 8 * _GIB
    max_selection_bytes: int = 256 << 20
    max_connections: int = 2048
    drain_seconds: float = 1.5
    max_rows: int = 1 << 31
    deadline_seconds: float = 120.0

    def __post_init__(self) -> None:
        # Arguments follow the same rules as variables: each is written as text and parsed as its variable would be.
        for name, (variable, parse) in VARIABLES.items():
            value = getattr(self, name)
            if name == "memory_budget_bytes" and value == 0:
                object.__setattr__(self, name, _quarter_of_memory())
            elif value is not None and value != ():
                text = ",".join(value) if isinstance(value, tuple) else str(value)
                object.__setattr__(self, name, parse(variable, text))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Read the environment once; ``overrides`` that are not None win.

        Args:
            environ: Variables to read; the process's own by default.
            **overrides: Field values (already typed) that replace what the environment says.

        Raises:
            SettingError: A variable is malformed; the message names it.
        """
        source = os.environ if environ is None else environ
        return _read(tuple(source.get(variable, "").strip() for variable, _ in VARIABLES.values())).replace(**overrides)

    def replace(self, **overrides: Any) -> Settings:
        """Return a copy with the given fields; those that are None keep their value.

        Raises:
            SettingError: A name is not a setting.
        """
        unknown = sorted(overrides.keys() - VARIABLES.keys())
        if unknown:
            raise SettingError(f"There is no setting {unknown[0]!r}.", hint=f"Settings: {', '.join(VARIABLES)}.")
        given = {name: value for name, value in overrides.items() if value is not None}
        return replace(self, **given) if given else self


VARIABLES: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "public_url": ("FRAMEWIRE_PUBLIC_URL", _public_url),
    "allow_peers": ("FRAMEWIRE_ALLOW_PEERS", _peers),
    "trust_peers": ("FRAMEWIRE_TRUST_PEERS", _peers),
    "allowed_hosts": ("FRAMEWIRE_ALLOWED_HOSTS", _names),
    "runtime_dir": ("FRAMEWIRE_RUNTIME_DIR", _text),
    "same_host": ("FRAMEWIRE_SAME_HOST", _same_host),
    "codecs": ("FRAMEWIRE_CODECS", _codecs),
    "memory_budget_bytes": ("FRAMEWIRE_MEMORY_BUDGET_BYTES", _positive),
    "disk_budget_bytes": ("FRAMEWIRE_DISK_BUDGET_BYTES", _positive),
    "spill_dir": ("FRAMEWIRE_SPILL_DIR", _text),
    "ttl_seconds": ("FRAMEWIRE_TTL_SECONDS", _seconds),
    "max_body_bytes": ("FRAMEWIRE_MAX_BODY_BYTES", _positive),
    "max_selection_bytes": ("FRAMEWIRE_MAX_SELECTION_BYTES", _positive),
    "max_connections": ("FRAMEWIRE_MAX_CONNECTIONS", _positive),
    "drain_seconds": ("FRAMEWIRE_DRAIN_SECONDS", _seconds),
    "max_rows": ("FRAMEWIRE_MAX_ROWS", _positive),
    "deadline_seconds": ("FRAMEWIRE_DEADLINE_SECONDS", _seconds),
}
"""Field of :class:`Settings` to its environment variable and parser: the one table."""


@lru_cache(maxsize=16)
def _read(texts: tuple[str, ...]) -> Settings:
    """Read settings from the variables' texts in the table's order. Cached, since every small fetch asks for them."""
    values: dict[str, Any] = {}
    for text, (name, (variable, parse)) in zip(texts, VARIABLES.items(), strict=True):
        if text:
            values[name] = parse(variable, text)
    return Settings(**values)
