"""What goes to a transport and what comes back: plain values, which cost a small fetch next to nothing.

``httpx.Request`` and ``httpx.Response`` are the seam for other transports, but making the two takes a tenth of a small fetch:
framewire's own transport takes a :class:`Call` as it is, and every other one is handed ``Call.to_httpx()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import httpx

from framewire.client._pool import Peer

RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


class HeaderView(Protocol):
    """Headers by name, in any case: ``httpx.Headers`` and :class:`Headers`."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """The value, repeated headers joined by commas; ``default`` where there is none."""
        ...

    def __getitem__(self, name: str, /) -> str: ...

    def __contains__(self, name: str, /) -> bool: ...


class Headers(dict[str, str]):
    """The headers of an answer, by lower-case name."""

    @classmethod
    def of(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        """From names in lower case and values, in the order in which they came."""
        made = cls()
        for name, value in raw:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            dict.__setitem__(made, key, f"{dict.__getitem__(made, key)}, {text}" if key in made else text)
        return made

    def get(self, name: str, default: Any = None, /) -> Any:
        """See ``HeaderView``."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str, /) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())


HeadCheck: TypeAlias = Callable[[int, HeaderView], None]


class Hasher(Protocol):
    """What ``xxhash`` and ``hashlib`` objects are."""

    def update(self, data: Any, /) -> None:
        """Add bytes."""
        ...


class Ask(NamedTuple):
    """A request as a plan states it.

    Attributes:
        method: HTTP method.
        headers: Without Host and lengths, which follow from the rest.
        content: Body.
        path: Path and query at the same peer; None is the resource itself.
    """

    method: str
    headers: RawHeaders
    content: bytes = b""
    path: str | None = None


@dataclass(slots=True)
class Call:
    """One request to a checked address, and the bounds of its answer.

    Attributes:
        method: HTTP method.
        target: Path and query, as they are sent. Holds the token.
        headers: Name and value of each, Host included.
        content: Body.
        peer: Where to connect; the address is never resolved.
        deadline: ``time.monotonic()`` value at which the whole exchange ends.
        max_bytes: Largest body of the answer.
        check_head: Called with status and headers before a byte of the body is read or allocated; it may raise.
        hasher: Told of every body byte of a 200 or a 206 as it arrives.
        into: Writable view that the body of a 206 is put into, of exactly its length.
    """

    method: str
    target: bytes
    headers: RawHeaders
    content: bytes
    peer: Peer
    deadline: float
    max_bytes: int
    check_head: HeadCheck | None = None
    hasher: Hasher | None = None
    into: memoryview | None = None

    def to_httpx(self) -> httpx.Request:
        """The same for a transport that is not framewire's own."""
        host = f"[{self.peer.host}]" if ":" in self.peer.host else self.peer.host
        port = "" if self.peer.port == _DEFAULT_PORTS[self.peer.scheme] else f":{self.peer.port}"
        url = f"{self.peer.scheme}://{host}{port}{self.target.decode('ascii')}"
        # httpx writes the length itself; a GET of no content has none.
        request = httpx.Request(self.method, url, headers=list(self.headers), content=self.content or None)
        request.extensions = {
            "framewire.address": self.peer.address,
            "framewire.deadline": self.deadline,
            "framewire.max_bytes": self.max_bytes,
            "framewire.check_head": self.check_head,
            "framewire.hasher": self.hasher,
        } | ({} if self.into is None else {"framewire.into": self.into})
        return request


class Answer(NamedTuple):
    """An answer, read to its end.

    Attributes:
        status: HTTP status.
        headers: Its headers.
        body: A ``pa.Buffer`` of exactly its bytes.
        hashed: Whether the call's hasher was told of every byte.
    """

    status: int
    headers: HeaderView
    body: Any
    hashed: bool = False


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
