"""Which servers a consumer may call. A ``resource_url`` comes from a model: it is hostile input until it is checked here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from framewire.errors import SettingError, TransferDeniedError
from framewire.handle import is_framewire_token
from framewire.host.addresses import Address, AddressKind, kind_of, parse_address
from framewire.host.registry import Registration, lookup
from framewire.host.urls import BASE_HINT, Base, ResourceURL, parse_base, parse_resource_url
from framewire.settings import Settings

Resolver: TypeAlias = Callable[..., Iterable[tuple[Any, ...]]]
"""Called as ``resolver(host, port, type=socket.SOCK_STREAM)``; answers as ``socket.getaddrinfo`` does."""

_MAX_ANSWERS: Final = 64
"""Most addresses read from one resolution; a name with more of them is refused."""


@dataclass(frozen=True)
class Target:
    """A checked ``resource_url``: where to connect, and what to ask for there.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Host name in lower case, or an IP literal without brackets: for the Host header, SNI and certificate.
        port: Port to connect to.
        address: IP literal that was checked; the only thing to be dialled.
        path: Path of the request. Holds the token: absent from ``repr``.
        token: The last path segment. Absent from ``repr``.
        is_legacy: Whether the token lacks the prefix that promises wire version 1.
        origin: ``scheme://host[:port]``; fit for logs and errors.
        trusted: Whether the body may skip full validation and may be mapped.
        is_loopback: Whether ``address`` is of this host, where compressing would only cost time.
        registration: The registry's entry of this origin, when only the registry allows it: the server must prove itself before
            it is sent the token, and is then trusted.
        url: ``origin`` and ``path`` together, in the one spelling that was checked. Absent from ``repr``.
    """

    scheme: str
    host: str
    port: int
    address: str
    path: str = field(repr=False)
    token: str = field(repr=False)
    is_legacy: bool
    origin: str
    trusted: bool
    url: str = field(repr=False)
    registration: Registration | None = None
    is_loopback: bool = True

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        return self.origin.partition("://")[2]


class PeerPolicy:
    """Decides which ``resource_url`` a consumer may fetch, and pins the address that it will connect to.

    Link-local, metadata, unspecified, multicast, broadcast and reserved addresses are refused, configured or not. A
    configured name may stand for public or for private addresses, but not for both at once; it may stand for loopback
    only if it is this host's own name. A name that is not configured is never even resolved.

    Args:
        allow: Peers that may be fetched: exact origins, or base URLs such as ``https://h/data`` (then only under that
            path). ``http://127.0.0.1:*`` is any port of that loopback host.
        trust: Peers whose bodies may skip full validation; they need not be in ``allow`` as well.
        registered: Finds this user's own data planes by origin; they need no configuration. None looks for none.
        resolver: Replaces ``socket.getaddrinfo``; called once per check, for configured names and ``localhost`` only.

    Raises:
        SettingError: An entry of ``allow`` or ``trust`` is neither an origin nor a base URL.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        trust: Iterable[str] = (),
        *,
        registered: Callable[[str], Registration | None] | None = lookup,
        resolver: Resolver = socket.getaddrinfo,
    ) -> None:
        self._allow = _bases("allow", allow)
        self._trust = _bases("trust", trust)
        self._registered = registered
        self._resolver = resolver

    @classmethod
    @lru_cache(maxsize=16)
    def from_settings(cls, settings: Settings) -> PeerPolicy:
        """The policy of ``settings.allow_peers``, ``settings.trust_peers`` and this user's registry."""
        return cls(settings.allow_peers, settings.trust_peers, registered=partial(lookup, folder=settings.runtime_dir))

    def __repr__(self) -> str:
        return f"PeerPolicy(allow={len(self._allow)} peers, trust={len(self._trust)} peers)"

    def check(self, resource_url: str) -> Target:
        """Check ``resource_url``, resolve its host once, and return where to connect.

        Args:
            resource_url: ``<base>/s2sp/data/<token>``, at most 2,048 ASCII characters, as a resource tool returned it.

        Raises:
            TransferDeniedError: Anything is wrong with it. The text is the same for every cause, so that a model
                cannot use it to explore a network; it holds neither the URL nor its host.
        """
        url = parse_resource_url(resource_url)
        if url is not None:
            trusted = any(base.covers(url) for base in self._trust)
            if trusted or any(base.covers(url) for base in self._allow):
                address = self._pin(url)
                target = None if address is None else _target(url, address, trusted=trusted)
            else:
                target = self._own(url)
            if target is not None:
                return target
        # Outside of every ``except``: the refusal carries no context that could hold a host or a URL.
        raise refusal()

    def _own(self, url: ResourceURL) -> Target | None:
        """Find a data plane of this user on this host in the registry; only literals and ``localhost`` are looked up."""
        if self._registered is None or url.prefix or not (url.host.address is not None or url.host.name == "localhost"):
            return None
        address = self._pin(url)
        if address is None:
            return None
        literal = f"[{address}]" if address.version == 6 else str(address)
        registration = self._registered(f"{url.scheme}://{literal}:{url.port}")
        return None if registration is None else _target(url, address, registration=registration)

    def _pin(self, url: ResourceURL) -> Address | None:
        """Return the address to dial, or None where any resolved address is forbidden."""
        if url.host.address is not None:
            return None if kind_of(url.host.address) is AddressKind.NEVER else url.host.address
        addresses = self._resolve(url.host.name, url.port)
        kinds = {kind_of(address) for address in addresses}
        if len(kinds) != 1:
            return None  # nothing resolved, or a name that is public and private at once: somebody is rebinding it
        kind = kinds.pop()
        if kind is AddressKind.NEVER or (kind is AddressKind.LOOPBACK and not _is_own_name(url.host.name)):
            return None
        if url.host.name == "localhost":
            # Servers listen on 127.0.0.1 by default, while many hosts put ::1 first; only one address can be pinned.
            return min(addresses, key=lambda address: address.version) if kind is AddressKind.LOOPBACK else None
        return addresses[0]

    def _resolve(self, name: str, port: int) -> list[Address]:
        """Return every address of ``name`` in the resolver's order; none where it failed or gave text that is not an address."""
        addresses: list[Address] = []
        try:
            for answer in self._resolver(name, port, type=socket.SOCK_STREAM):
                address = parse_address(str(answer[4][0]))
                if address is None or len(addresses) >= _MAX_ANSWERS:
                    return []
                addresses.append(address)
        except Exception:  # a resolver may raise anything (gaierror, UnicodeError, herror...): all mean "no"
            return []
        return addresses


def refusal() -> TransferDeniedError:
    """The one error for every refusal."""
    return TransferDeniedError(
        "This resource_url is not one that this consumer may fetch from; no connection was made.",
        hint="Pass the resource_url exactly as the resource tool returned it, or call that tool again if its server has "
        "restarted since. If it is exact, the operator of this consumer must list its resource server: set "
        "FRAMEWIRE_ALLOW_PEERS to that server's origin (for example https://data.example.org, or "
        "https://example.org/data under a path), or FRAMEWIRE_TRUST_PEERS for a server of their own, and restart. "
        "Servers that the same user runs on the same host need neither.",
    )


def _bases(name: str, entries: Iterable[str]) -> tuple[Base, ...]:
    if isinstance(entries, str):
        raise SettingError(f"PeerPolicy({name}=...) is text.", hint="It takes a list of origins.")
    bases = []
    for position, entry in enumerate(entries):
        base = parse_base(entry)
        if base is None:
            raise SettingError(
                f"Entry {position} of PeerPolicy({name}=...) is neither an origin nor a base URL.", hint=BASE_HINT
            )
        bases.append(base)
    return tuple(bases)


def _is_own_name(name: str) -> bool:
    """Whether a name may resolve to loopback. Debian, for one, maps a host's own name to 127.0.1.1."""
    own = socket.gethostname().lower().partition(".")[0]
    return name == "localhost" or name.endswith(".localhost") or name.partition(".")[0] == own


def _target(
    url: ResourceURL, address: Address, *, trusted: bool = False, registration: Registration | None = None
) -> Target:
    return Target(
        scheme=url.scheme,
        host=url.host.name,
        port=url.port,
        address=str(address),
        path=url.path,
        token=url.token,
        is_legacy=not is_framewire_token(url.token),
        origin=url.origin,
        trusted=trusted,
        url=url.origin + url.path,
        registration=registration,
        is_loopback=kind_of(address) is AddressKind.LOOPBACK,
    )
