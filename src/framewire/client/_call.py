"""Requests and responses as plain values: building httpx's own takes a tenth of a small fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import xxhash

from framewire.client._cancellation import Cancellation
from framewire.client._failures import AGAIN, BrokenTransferError, too_large
from framewire.client._pool import Peer
from framewire.errors import BadBodyError

RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Headers(dict[str, str]):
    """Response headers by lower-case name; looked up in any case."""

    @classmethod
    def of(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Build from names and values in the order of arrival; repeated headers are joined by commas."""
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]
        headers = cls(pairs)
        if len(headers) < len(pairs):
            headers.update({key: ", ".join(value for name, value in pairs if name == key) for key in headers})
        return headers

    def get(self, name: str, default: Any = None, /) -> Any:
        """The value; ``default`` if the header is absent."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str, /) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())


HeadCheck: TypeAlias = Callable[[int, Headers], None]


class Request(NamedTuple):
    """An HTTP request.

    Attributes:
        method: ``GET`` or ``POST``.
        headers: Names and values, without Content-Length.
        content: Body.
        path: Path and query. Holds the token. Empty in what a plan asks for: the resource itself.
    """

    method: str
    headers: RawHeaders
    content: bytes = b""
    path: str = ""


@dataclass(slots=True)
class Call:
    """One request to a checked address, and the bounds of its response.

    Attributes:
        request: The request, Host header included. Holds the token: absent from ``repr``.
        peer: Where to connect; the address is never resolved.
        deadline: ``time.monotonic()`` value at which the whole exchange ends.
        max_bytes: Largest body of the response.
        check_head: Called with status and headers before a byte of the body is read or allocated; it may raise.
        hasher: ``update()`` is called with every body byte of a 200 or a 206 as it arrives.
        resume: A transfer that broke off, of which a 206 brings the rest.
        cancellation: Ends the exchange early.
    """

    request: Request = field(repr=False)
    peer: Peer
    deadline: float
    max_bytes: int
    check_head: HeadCheck | None = None
    hasher: xxhash.xxh3_128 | None = None
    resume: BrokenTransferError | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)

    def admit(self, status: int, headers: Headers) -> int | None:
        """Judge a response by its head. Every transport calls this before it reads or allocates a byte of the body.

        Returns:
            The announced length of the body; None when the response does not announce one.

        Raises:
            BadBodyError: The body has a content coding, whose expansion has no bound, or its length is malformed.
            TooLargeError: The announced length is above ``max_bytes``.
            S2SPError: ``check_head`` refuses the response.
        """
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise BadBodyError(
                "The response has a content coding that was not asked for.",
                hint="A proxy may compress it: have it pass application/vnd.apache.arrow.stream unchanged.",
            )
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdecimal() and len(length) <= 20):
            raise BadBodyError("The response has a malformed Content-Length.", hint=AGAIN)
        if self.check_head is not None:
            self.check_head(status, headers)
        if length is None:
            return None
        size = int(length)
        if size > self.max_bytes:
            raise too_large(size, self.max_bytes)
        return size


class Response(NamedTuple):
    """A response, read to its end.

    Attributes:
        status: HTTP status.
        headers: Its headers.
        body: A ``pa.Buffer`` of exactly its bytes.
        hashed: Whether the call's hasher saw every byte.
    """

    status: int
    headers: Headers
    body: Any
    hashed: bool = False
