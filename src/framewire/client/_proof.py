"""Challenges that a registered data plane answers before it is sent any token."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Final

from framewire import wire
from framewire.client._call import Request
from framewire.host.registry import Registration, new_challenge

MAX_PROOF_BYTES: Final = 4096
"""A health response is a hundred bytes; a stranger on the port may send more."""


@dataclass(frozen=True)
class Proof:
    """One challenge to one data plane.

    Attributes:
        registration: What the registry says of the origin.
        challenge: Random text that the proof must be made for.
    """

    registration: Registration
    challenge: str = field(default_factory=new_challenge)

    def request(self) -> Request:
        """The request for a proof. It holds no token, so a stranger on the port learns nothing."""
        headers = ((b"Accept", wire.JSON.encode()), (b"Accept-Encoding", b"identity"))
        return Request("GET", headers, path=f"{wire.HEALTH_PATH}?challenge={self.challenge}")

    def holds(self, status: int, body: bytes) -> bool:
        """Whether the response proves knowledge of the nonce."""
        if status != 200 or len(body) > MAX_PROOF_BYTES:
            return False
        try:
            proof = json.loads(body)["proof"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return isinstance(proof, str) and self.registration.accepts(self.challenge, proof)


class Proven:
    """Registrations that have proved themselves to this process. One proof lasts as long as the process that gave it lives.

    The registry is asked again for every fetch, and believes no entry of a dead process; so a port that another process
    takes over is never taken for the one that proved itself.
    """

    def __init__(self) -> None:
        self._known: set[Registration] = set()
        self._lock = threading.Lock()

    def knows(self, registration: Registration) -> bool:
        """Whether this very registration was proved before."""
        with self._lock:
            return registration in self._known

    def add(self, registration: Registration) -> None:
        """Remember a proof; those of dead processes are forgotten."""
        with self._lock:
            self._known = {entry for entry in self._known if entry.is_alive()} | {registration}
