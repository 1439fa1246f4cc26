"""Challenges that a registered data plane answers before it is sent any token."""

from __future__ import annotations

import json
from typing import Final

from framewire import wire
from framewire.client._call import Request
from framewire.host.registry import Registration

MAX_PROOF_BYTES: Final = 4096
"""A health response is a hundred bytes; a stranger on the port may send more."""

_PROVEN: Final[set[Registration]] = set()
"""Registrations proved to this process. One proof lasts as long as the process that gave it lives: the registry is asked again
for every fetch, and believes no entry of a dead process, so a port that another process takes over is never taken for the one
that proved itself.
"""


def challenge_request(challenge: str) -> Request:
    """The request for a proof. It holds no token, so a stranger on the port learns nothing."""
    headers = ((b"Accept", wire.JSON.encode()), (b"Accept-Encoding", b"identity"))
    return Request("GET", headers, path=f"{wire.HEALTH_PATH}?challenge={challenge}")


def is_proof(registration: Registration, challenge: str, status: int, body: bytes) -> bool:
    """Whether the response to a challenge proves knowledge of the registered nonce."""
    if status != 200 or len(body) > MAX_PROOF_BYTES:
        return False
    try:
        proof = json.loads(body)["proof"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(proof, str) and registration.accepts(challenge, proof)


def is_proven(registration: Registration) -> bool:
    """Whether this very registration was proved before."""
    return registration in _PROVEN


def remember(registration: Registration) -> None:
    """Remember a proof; those of dead processes are forgotten."""
    for entry in list(_PROVEN):
        if not entry.is_alive():
            _PROVEN.discard(entry)
    _PROVEN.add(registration)
