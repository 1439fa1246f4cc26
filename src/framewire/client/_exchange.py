"""One HTTP/1.1 exchange on a socket: h11 reads heads and chunks, the kernel puts a body of known length in place."""

from __future__ import annotations

import re
import socket
import ssl
import sys
import time
from contextlib import suppress
from typing import Any, Final

import h11

from framewire.client._call import Hasher, Headers, HeaderView, RawHeaders
from framewire.client._head import Head, plain_head
from framewire.client._watchdog import WATCHDOG
from framewire.errors import S2SPError, TooLargeError, TransferFailedError, TransferTimeoutError

_MAX_HEAD_BYTES: Final = 64 << 10
_MAX_HEADERS: Final = 100
_MAX_INTERIM: Final = 16
"""1xx answers before the real one."""
_SMALL: Final = 64 << 10
_CHUNK: Final = 128 << 10
"""Bytes asked of one ``recv_into``. Measured on loopback: 128 KiB reached 5.0 GB/s, 1 MiB 3.5 (the queue
then outgrows the processor's cache); MSG_WAITALL and a set SO_RCVBUF were slower as well."""
_SOME_REQUEST: Final = h11.Request(method="GET", target="/", headers=[("Host", "localhost")])
"""Tells h11 that an answer is due; what was sent is not its concern."""
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(_TOKEN + rb" [\x21-\x7e]+ HTTP/1\.1\r\n")
_HEADER_LINE: Final = re.compile(
    _TOKEN + rb": (?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?\r\n"
)
"""RFC 9110: no value begins or ends with white space."""
_LENGTHS: Final = (b"content-length", b"transfer-encoding")
_SHUTDOWN_WAKES: Final = sys.platform != "win32"
"""Whether shutting a socket down wakes a blocked ``recv``; elsewhere the socket keeps a timeout of its own as well."""

AGAIN: Final = "Nothing was kept; try again, or call the resource tool again for a fresh resource_url."


class StaleConnectionError(Exception):
    """A kept connection turned out to be closed before a byte of the answer: the request may be sent once more."""


class BrokenTransferError(TransferFailedError):
    """The connection ended in the middle of an exchange; the request may be made again.

    Attributes:
        headers: Head of the answer, where it had come; else None.
        buffer: What the body was being put into; else None.
        received: Bytes of the body that had come.
    """

    headers: HeaderView | None = None
    buffer: Any = None
    received: int = 0


class Exchange:
    """A request and its answer on ``sock``, until a deadline.

    Use as a context manager: on leaving, the socket is released from the watchdog, and closed unless ``reusable``.

    Attributes:
        sock: The socket; the caller keeps it if the exchange ended ``reusable``.
        reusable: Whether the connection may carry another exchange; set once the answer was read to its end.
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
        try:
            self.sock.settimeout(None if _SHUTDOWN_WAKES else max(self._deadline - time.monotonic(), 0.001))
            self._watch = WATCHDOG.watch(self.sock, self._deadline)
        except BaseException:
            self.sock.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        WATCHDOG.release(self._watch)
        self.reusable = self.reusable and not self._watch.fired
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
            self.sock.do_handshake()
        except ssl.SSLCertVerificationError as exc:
            reason = exc.verify_message
        except OSError as exc:
            raise self.broken("during the TLS handshake", exc) from None
        else:
            return
        raise TransferFailedError(
            f"The resource server's certificate was refused: {reason}.",
            hint="A private authority is trusted through SSL_CERT_FILE, or an ssl_context given to DirectTransport.",
        )

    def send(self, method: str, target: bytes, headers: RawHeaders, body: bytes) -> None:
        """Send the request whole.

        Raises:
            TransferFailedError: It is malformed, or the connection broke.
            StaleConnectionError: A kept connection was closed already.
            TransferTimeoutError: The deadline passed.
        """
        lines = [b"%s %s HTTP/1.1\r\n" % (method.encode("latin-1", "replace"), target)]
        # The body is at hand, so it goes with its length, whatever else the request said of it.
        lines += [b"%s: %s\r\n" % pair for pair in headers if pair[0].lower() not in _LENGTHS]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(b"Content-Length: %d\r\n" % len(body))
        # Each alone: a value with a line break in it would be a header more.
        if not _REQUEST_LINE.fullmatch(lines[0]) or not all(map(_HEADER_LINE.fullmatch, lines[1:])):
            raise TransferFailedError("The request is not well-formed HTTP; nothing was sent.")
        lines += [b"\r\n", body]
        try:
            self.sock.sendall(b"".join(lines))
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server may refuse before it has read a large request; its answer, or the lack of one, decides
        except OSError as exc:
            raise self.broken("while the request was sent", exc) from None

    def read_head(self) -> Head:
        """The final answer's status and headers; 1xx answers are skipped.

        Raises:
            TransferFailedError: The head is malformed, too large, or broke off.
            StaleConnectionError: A kept connection was closed before any byte.
            TransferTimeoutError: The deadline passed.
        """
        for _ in range(_MAX_INTERIM):
            raw = self._read_head_bytes()
            head = plain_head(raw) or self._unusual_head(raw)
            if head is not None:
                if len(head.headers) > _MAX_HEADERS:
                    raise TransferFailedError(f"The answer has more than {_MAX_HEADERS} headers.", hint=AGAIN)
                self._keep_alive = head.is_http_1_1 and "close" not in head.headers.get("connection", "").lower()
                return head
        raise TransferFailedError(f"More than {_MAX_INTERIM} interim answers came.", hint=AGAIN)

    def _unusual_head(self, raw: bytes) -> Head | None:
        """A head that h11 has to judge; None for an interim answer."""
        event: object = None
        # h11's text quotes the head, which may echo the token: ours is raised below, without it in its context.
        with suppress(h11.RemoteProtocolError):
            if self._conn.our_state is h11.IDLE:
                self._conn.send(_SOME_REQUEST)
                self._conn.send(h11.EndOfMessage())
            self._conn.receive_data(raw)
            event = self._conn.next_event()
        if isinstance(event, h11.Response):
            return Head(event.status_code, Headers.of(event.headers), event.http_version == b"1.1")
        if not isinstance(event, h11.InformationalResponse):
            raise TransferFailedError("The answer is not well-formed HTTP.", hint=AGAIN)
        return None

    def _read_head_bytes(self) -> bytes:
        searched = 0
        while True:
            end = _HEAD_END.search(self._rest, searched)
            size = len(self._rest) if end is None else end.end()
            if self._rest[:5] != b"HTTP/"[: len(self._rest)]:
                raise TransferFailedError("The answer is not HTTP.", hint=AGAIN)  # some other service's greeting
            if end is not None and size <= _MAX_HEAD_BYTES:
                head = bytes(self._rest[:size])
                del self._rest[:size]
                return head
            if size > _MAX_HEAD_BYTES:
                raise TransferFailedError(f"The answer's headers are above {_MAX_HEAD_BYTES >> 10} KiB.", hint=AGAIN)
            searched = max(len(self._rest) - 2, 0)
            self._rest += self._receive("before its headers were complete" if self._answered else "before it answered")

    def _receive(self, when: str) -> bytes:
        """Some bytes; the end of the stream is an error."""
        error: OSError | None = None
        data = b""
        try:
            data = self.sock.recv(_SMALL)
        except OSError as exc:
            error = exc
        if data and not self._watch.fired:
            self._answered = True
            return data
        raise self.broken(when, error)

    def read_into(self, view: memoryview, hasher: Hasher | None = None) -> None:
        """Fill ``view`` with the body, whose length it is.

        Args:
            view: Writable.
            hasher: Told of every byte while it is still in the processor's cache: half the cost of a pass at the end.

        Raises:
            TransferFailedError: The body broke off.
            TransferTimeoutError: The deadline passed.
        """
        size = len(view)
        got = min(len(self._rest), size)
        if got:  # an empty buffer may be read-only
            view[:got] = self._rest[:got]
            if hasher is not None:
                hasher.update(view[:got])
        recv_into, watch = self.sock.recv_into, self._watch
        try:
            while got < size and not watch.fired:
                count = recv_into(view[got : got + _CHUNK])
                if not count:
                    break
                if hasher is not None:
                    hasher.update(view[got : got + count])
                got += count
        except OSError as exc:
            self.received = got
            raise self.broken(f"after {got} of {size} body bytes", exc) from None
        self.received = got
        if got < size:
            raise self.broken(f"after {got} of {size} body bytes", None)
        self.reusable = self._keep_alive and len(self._rest) <= size

    def read_chunked(self, max_bytes: int) -> bytearray:
        """A body of unannounced length, in chunks.

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
            if self._watch.fired:
                raise self.broken(f"after {len(body)} body bytes", None)

    def no_body(self) -> None:
        """Say that the answer has no body, so that the connection can be kept."""
        self.reusable = self._keep_alive and not self._rest

    def broken(self, when: str, exc: OSError | None) -> S2SPError | StaleConnectionError:
        """What to raise when the connection ended: the deadline, a stale kept connection, or a broken transfer."""
        if self._watch.fired or (isinstance(exc, TimeoutError) and time.monotonic() >= self._deadline):
            return timed_out(when)
        if self._reused and not self._answered:
            return StaleConnectionError()
        reason = f" ({exc.strerror or type(exc).__name__})" if exc is not None else ""
        return BrokenTransferError(f"The resource server broke the connection {when}{reason}.", hint=AGAIN)


def timed_out(when: str) -> TransferTimeoutError:
    """The deadline's error."""
    return TransferTimeoutError(
        f"The deadline passed {when}.",
        hint="Select fewer rows or columns, raise FRAMEWIRE_DEADLINE_SECONDS, or try again.",
    )


def too_large(size: int | None, max_bytes: int) -> TooLargeError:
    """The error of a body above the limit; ``size`` is None where it was not announced."""
    return TooLargeError(
        f"The answer's body is {size} bytes, above the limit of {max_bytes}."
        if size is not None
        else f"The answer's body is above the limit of {max_bytes} bytes.",
        hint="Select fewer rows or columns, or raise FRAMEWIRE_MAX_BODY_BYTES.",
    )
