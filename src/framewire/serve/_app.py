"""DataApp: the pure ASGI app that speaks wire version 1."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any, Final

from framewire import wire
from framewire.errors import ArgumentError, RequestError, S2SPError, SelectionError
from framewire.host.registry import CHALLENGE_CHARS, Registration, is_challenge
from framewire.host.threads import SERVING
from framewire.selection import Selection, parse_selection
from framewire.serve._hosts import HostPolicy
from framewire.serve._negotiate import negotiate
from framewire.serve._request import Message, Receive, Request, Scope, Send, parse_json
from framewire.serve._response import Response, is_ready, respond
from framewire.serve._send import send_leased, send_response
from framewire.store import BodyStore, Entry

logger = logging.getLogger(__name__)

_LEASE: Final = wire.H_LEASE.lower()


class PathError(RequestError):
    """The data plane has nothing at this path."""

    status = 404


class MethodError(RequestError):
    """The path does not support this method."""

    status = 405


class DataApp:
    """ASGI app over a body store: ``/s2sp/data/{token}`` and ``/s2sp/health``.

    Args:
        store: Where bodies are.
        hosts: Which ``Host`` and ``Origin`` headers are answered.
        max_selection_bytes: Largest scattered selection that is materialised.

    Attributes:
        registration: This plane's entry in its user's registry, whose nonce it proves to know when challenged.
    """

    def __init__(self, store: BodyStore, hosts: HostPolicy, *, max_selection_bytes: int) -> None:
        self.hosts = hosts
        self.registration: Registration | None = None
        self._store = store
        self._max_selection_bytes = max_selection_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every failure is one of framewire's JSON errors."""
        if scope["type"] != "http":
            await _end_other_scopes(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            request = Request(scope, receive)
            self.hosts.check(request.headers.get("host", ""), request.headers.get("origin", ""))
            await self._route(request, watched)
        except S2SPError as exc:
            if started:
                raise
            await _send_error(exc, scope["method"], send)
        except Exception:
            # Once bytes are out, only breaking the connection tells the client; before that, a plain error can.
            if started:
                raise
            logger.exception("A data-plane request failed")
            error = S2SPError("The data plane failed.", hint="Try again; its log says more.")
            await _send_error(error, scope["method"], send)

    async def _route(self, request: Request, send: Send) -> None:
        token = request.path.removeprefix(wire.DATA_PREFIX)
        if request.path.startswith(wire.DATA_PREFIX) and token and "/" not in token:
            await self._data(token, request, send)
        elif request.path == wire.HEALTH_PATH:
            await self._health(request, send)
        else:
            raise PathError(
                "The data plane has nothing at this path.", hint="Use a resource_url exactly as it was given."
            )

    async def _health(self, request: Request, send: Send) -> None:
        if request.method not in ("GET", "HEAD"):
            raise MethodError(f"{request.method} is not supported here.", hint="Use GET.")
        payload: dict[str, Any] = {"status": "ok"}
        challenge = dict(request.query_pairs()).get("challenge")
        if challenge is not None:
            if not is_challenge(challenge):
                raise SelectionError(
                    "This is not a challenge.", hint=f"Send {CHALLENGE_CHARS} lower-case hexadecimal digits."
                )
            if self.registration is not None:
                payload["proof"] = self.registration.prove(challenge)
        await _send_json(200, payload, request.method, send)

    async def _data(self, token: str, request: Request, send: Send) -> None:
        if request.method == "DELETE":
            self._store.revoke(token)
            await _send_json(200, {"revoked": True}, request.method, send)
            return
        if request.method not in ("GET", "HEAD", "POST"):
            raise MethodError(f"{request.method} is not supported here.", hint="Use POST, GET, HEAD or DELETE.")
        payload = parse_json(await request.body()) if request.is_small else None
        if isinstance(payload, dict) and "ack" in payload:
            await self._acknowledge(token, payload, request, send)
            return
        with self._store.open(token) as entry:
            selection = parse_selection(payload) if request.is_small else await _read_selection(request)
            response = await self._respond(entry, selection, request)
            with response.reservation:
                await self._send(response, entry, request, send)

    async def _respond(self, entry: Entry, selection: Selection, request: Request) -> Response:
        accepted = negotiate(request.headers, near=request.is_near)
        byte_range = request.headers.get("range", "") if request.method == "GET" else ""
        make = partial(
            respond,
            entry,
            selection,
            accepted,
            self._store,
            max_selection_bytes=self._max_selection_bytes,
            byte_range=byte_range,
            if_range=request.headers.get("if-range", ""),
        )
        if selection.is_whole and is_ready(entry, accepted) and not byte_range:
            # Nothing to compute: a hop to a thread would take longer than the response.
            return make()
        return await SERVING.run(make)

    async def _send(self, response: Response, entry: Entry, request: Request, send: Send) -> None:
        cold = entry.body.stored_bytes.cold
        is_head = request.method == "HEAD"
        # Taken last: a refused request spends nothing of a limited handle.
        lease = None if is_head else entry.lease(request.headers.get(_LEASE) or None)
        if lease is None:
            await send_response(response, send, head=is_head, cold=cold)
            return
        if response.status == 200:
            lease.announce(int(response.headers[wire.H_ROWS]), response.headers[wire.H_CHECKSUM])
        await send_leased(response, lease, request.receive, send, cold=cold)

    async def _acknowledge(self, token: str, payload: dict[str, Any], request: Request, send: Send) -> None:
        lease, rows, checksum = payload["ack"], payload.get("rows"), payload.get("checksum")
        if (
            set(payload) != wire.ACK_KEYS
            or type(rows) is not int
            or not isinstance(lease, str)
            or not isinstance(checksum, str)
        ):
            raise ArgumentError(
                "The acknowledgement is malformed.", hint='Send {"ack": lease, "rows": n, "checksum": "..."}.'
            )
        counts = self._store.acknowledge(token, lease, rows, checksum)
        await _send_json(200, {"acknowledged": True, "counts": counts}, request.method, send)


async def _read_selection(request: Request) -> Selection:
    """Read the selection of a query or of a large request."""
    if request.method != "POST":
        return parse_selection(request.query())
    body = await request.body()
    # Parsing a large list of ids would hold up every other transfer on this loop.
    return await SERVING.run(lambda: parse_selection(parse_json(body)))


async def _end_other_scopes(scope: Scope, receive: Receive, send: Send) -> None:
    """Complete the lifespan protocol, which has nothing to do here, and refuse WebSockets."""
    message = await receive()
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
        return
    while message["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
        message = await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def _send_json(status: int, payload: dict[str, Any], method: str, send: Send) -> None:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    headers = [
        (b"content-type", wire.JSON.encode()),
        (b"content-length", str(len(text)).encode()),
        (wire.H_VERSION.encode(), wire.WIRE_VERSION.encode()),
        (b"cache-control", b"no-store"),
    ]
    if "retry_after_seconds" in payload:
        headers.append((b"retry-after", str(payload["retry_after_seconds"]).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else text, "more_body": False})


async def _send_error(exc: S2SPError, method: str, send: Send) -> None:
    await _send_json(exc.status, exc.to_wire(), method, send)
