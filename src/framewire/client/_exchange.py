"""One HTTP/1.1 exchange on a socket: h11 reads heads and chunks, the kernel writes a body of known length in place."""

from __future__ import annotations

import re
import socket
import ssl
import time
from contextlib import suppress
from typing import Final

import h11
import xxhash

from framewire.client._call import Headers, Request
from framewire.client._failures import AGAIN, BrokenTransferError, StaleConnectionError, timed_out, too_large
from framewire.errors import S2SPError, TransferFailedError

_MAX_HEAD_BYTES: Final = 64 << 10
_MAX_HEADERS: Final = 100
_MAX_INTERIM: Final = 16
"""1xx responses before the final one."""
_SMALL: Final = 64 << 10
_CHUNK: Final = 128 << 10
"""Bytes asked of one ``recv_into``. Measured on loopback: 128 KiB reached 5.0 GB/s, 1 MiB 3.5 (the queue
then outgrows the processor's cache); MSG_WAITALL and a set SO_RCVBUF were slower as well."""
_LONGEST_WAIT_SECONDS: Final = 1e6
"""Sockets refuse timeouts above 24 days."""
_SOME_REQUEST: Final = h11.Request(method="GET", target="/", headers=[("Host", "localhost")])
"""Tells h11 that a response is due; the request that was sent is not its concern."""
_STATUS_AT: Final = len("HTTP/1.1 ")
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(_TOKEN + rb" [\x21-\x7e]+ HTTP/1\.1\r\n")
_HEADER_LINE: Final = re.compile(
    _TOKEN + rb": (?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?\r\n"
)
"""RFC 9110: no value begins or ends with white space."""
_LENGTHS: Final = (b"content-length", b"transfer-encoding")


class Exchange:
    """A request and its response on ``sock``, until a deadline.

    Use as a context manager: on leaving, the socket is closed unless ``reusable``.

    Attributes:
        sock: The socket; the caller keeps it if the exchange ended ``reusable``.
        reusable: Whether the connection may carry another exchange; set once the response was read to its end.
        received: Body bytes that have arrived.
    """

    def __init__(self, sock: socket.socket, *, deadline: float, reused: bool) -> None:
        self.sock = sock
        self._deadline = deadline
        self._reused = reused
        self._conn = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._rest = bytearray()
        self._answered = False
        self._keep_alive = False
        self.received = 0
        self.reusable = False

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.reusable:
            self.sock.close()

    def handshake(self) -> None:
        """Complete TLS where the socket is a new TLS one; the peer's certificate and name are verified here.

        Raises:
            TransferFailedError: The certificate is not valid for the name, or TLS failed.
            TransferTimeoutError: The deadline passed.
        """
        if self._reused or not isinstance(self.sock, ssl.SSLSocket):
            return
        try:
            self._arm()
            self.sock.do_handshake()
        except ssl.SSLCertVerificationError as exc:
            reason = exc.verify_message
        except OSError as exc:
            raise self._broken("during the TLS handshake", exc) from None
        else:
            return
        raise TransferFailedError(
            f"The resource server's certificate was refused: {reason}.",
            hint="A private authority is trusted through SSL_CERT_FILE, or an ssl_context given to DirectTransport.",
        )

    def send(self, request: Request) -> None:
        """Send the request whole.

        Raises:
            TransferFailedError: It is malformed, or the connection broke.
            StaleConnectionError: A kept connection was closed already.
            TransferTimeoutError: The deadline passed.
        """
        lines = [f"{request.method} {request.path} HTTP/1.1\r\n".encode("latin-1", "replace")]
        # The body is at hand, so it is sent with its length, whatever else the headers say of it.
        lines += [b"%s: %s\r\n" % pair for pair in request.headers if pair[0].lower() not in _LENGTHS]
        if request.content or request.method == "POST":
            lines.append(b"Content-Length: %d\r\n" % len(request.content))
        # Each line alone: a line break in a value would add a header.
        if not _REQUEST_LINE.fullmatch(lines[0]) or not all(map(_HEADER_LINE.fullmatch, lines[1:])):
            raise TransferFailedError("The request is not well-formed HTTP; nothing was sent.")
        left = memoryview(b"".join([*lines, b"\r\n", request.content]))
        try:
            while left:
                self._arm()
                left = left[self.sock.send(left) :]
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server may refuse before it has read a large request; its response, or the lack of one, decides
        except OSError as exc:
            raise self._broken("while the request was sent", exc) from None

    def read_head(self) -> tuple[int, Headers]:
        """Read the final response's status and headers; 1xx responses are skipped.

        Raises:
            TransferFailedError: The head is malformed, too large, or broke off.
            StaleConnectionError: A kept connection was closed before any byte.
            TransferTimeoutError: The deadline passed.
        """
        for _ in range(_MAX_INTERIM):
            raw = self._read_head_bytes()
            if raw[_STATUS_AT : _STATUS_AT + 1] == b"1" and self._conn.our_state is h11.IDLE:
                # A final response may come at any time; an interim one h11 takes only once it knows of a request.
                self._conn.send(_SOME_REQUEST)
                self._conn.send(h11.EndOfMessage())
            event: object = None
            # h11's text quotes the head, which may echo the token: ours is raised below, without it in its context.
            with suppress(h11.RemoteProtocolError):
                self._conn.receive_data(raw)
                event = self._conn.next_event()
            if isinstance(event, h11.InformationalResponse):
                continue
            if not isinstance(event, h11.Response):
                raise TransferFailedError("The response is not well-formed HTTP.", hint=AGAIN)
            if len(event.headers) > _MAX_HEADERS:
                raise TransferFailedError(f"The response has more than {_MAX_HEADERS} headers.", hint=AGAIN)
            headers = Headers.of(event.headers.raw_items())
            self._keep_alive = event.http_version == b"1.1" and "close" not in headers.get("connection", "").lower()
            return event.status_code, headers
        raise TransferFailedError(f"More than {_MAX_INTERIM} interim responses came.", hint=AGAIN)

    def _read_head_bytes(self) -> bytes:
        searched = 0
        while True:
            end = _HEAD_END.search(self._rest, searched)
            size = len(self._rest) if end is None else end.end()
            if self._rest[:5] != b"HTTP/"[: len(self._rest)]:
                raise TransferFailedError("The response is not HTTP.", hint=AGAIN)  # some other service's greeting
            if end is not None and size <= _MAX_HEAD_BYTES:
                head = bytes(self._rest[:size])
                del self._rest[:size]
                return head
            if size > _MAX_HEAD_BYTES:
                raise TransferFailedError(f"The response headers are above {_MAX_HEAD_BYTES >> 10} KiB.", hint=AGAIN)
            searched = max(len(self._rest) - 2, 0)
            self._rest += self._receive("before its headers were complete" if self._answered else "before it answered")

    def _receive(self, when: str) -> bytes:
        """Read some bytes; the end of the stream is an error."""
        error: OSError | None = None
        data = b""
        try:
            self._arm()
            data = self.sock.recv(_SMALL)
        except OSError as exc:
            error = exc
        if data:
            self._answered = True
            return data
        raise self._broken(when, error)

    def read_into(self, view: memoryview, hasher: xxhash.xxh3_128 | None = None) -> None:
        """Fill ``view`` with the body, whose length it is.

        Args:
            view: Writable.
            hasher: Updated with every byte while it is still in the processor's cache: half the cost of a pass at the end.

        Raises:
            TransferFailedError: The body broke off.
            TransferTimeoutError: The deadline passed.
        """
        size = len(view)
        received = min(len(self._rest), size)
        if received:  # an empty buffer may be read-only
            view[:received] = self._rest[:received]
            if hasher is not None:
                hasher.update(view[:received])
        arm, recv_into = self._arm, self.sock.recv_into
        try:
            while received < size:
                arm()
                count = recv_into(view[received : received + _CHUNK])
                if not count:
                    break
                if hasher is not None:
                    hasher.update(view[received : received + count])
                received += count
        except OSError as exc:
            raise self._broken(f"after {received} of {size} body bytes", exc) from None
        finally:
            self.received = received
        if received < size:
            raise self._broken(f"after {received} of {size} body bytes", None)
        self.reusable = self._keep_alive and len(self._rest) <= size

    def read_chunked(self, max_bytes: int) -> bytearray:
        """Read a body of unannounced length, in chunks.

        Raises:
            TooLargeError: It passes ``max_bytes``.
            TransferFailedError: A chunk is malformed, or the last one is missing.
            TransferTimeoutError: The deadline passed.
        """
        body = bytearray()
        if self._rest:  # h11 takes no bytes for the end of the stream
            self._conn.receive_data(bytes(self._rest))
        while True:
            event: object = None
            with suppress(h11.RemoteProtocolError):
                event = self._conn.next_event()
            self.received = len(body)
            if event is h11.NEED_DATA:
                self._conn.receive_data(self._receive(f"after {len(body)} body bytes, without a last chunk"))
            elif isinstance(event, h11.Data):
                if len(body) + len(event.data) > max_bytes:
                    raise too_large(None, max_bytes)
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self.reusable = self._keep_alive and not self._conn.trailing_data[0]
                return body
            else:
                raise TransferFailedError(f"A chunk is malformed after {len(body)} body bytes.", hint=AGAIN)

    def _arm(self) -> None:
        """Give the next call on the socket what is left of the deadline: a server that dribbles bytes must not stretch it."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(min(left, _LONGEST_WAIT_SECONDS))

    def _broken(self, when: str, exc: OSError | None) -> S2SPError | StaleConnectionError:
        """The error for a connection that ended: the deadline, a stale kept connection, or a broken transfer."""
        if isinstance(exc, TimeoutError) and exc.errno is None:  # with an errno it is TCP that gave up
            return timed_out(when)
        if self._reused and not self._answered:
            return StaleConnectionError()
        reason = f" ({exc.strerror or type(exc).__name__})" if exc is not None else ""
        return BrokenTransferError(f"The resource server broke the connection {when}{reason}.", hint=AGAIN)
