"""Stores that keep published bodies between a publish and its fetches.

A store accounts for bytes (reserved before they exist), time (handles end on a monotonic clock, without being asked) and tokens
(kept hashed). It knows neither HTTP nor MCP. ``MemoryStore`` is the one in use. Any class that keeps the contract of
:class:`BodyStore` can take its place; ``framewire.testing.store`` checks whether it does.
"""

from __future__ import annotations

from framewire.store._body import Body, Representation
from framewire.store._budget import Budget, Reservation, Stats
from framewire.store._leases import LeaseBook
from framewire.store._memory import MemoryStore
from framewire.store._protocol import ActiveLease, BodyStore, Entry
from framewire.store._storage import Disk, Heap, SealedMemory, Storage, StoredBytes

__all__ = [
    "ActiveLease",
    "Body",
    "BodyStore",
    "Budget",
    "Disk",
    "Entry",
    "Heap",
    "LeaseBook",
    "MemoryStore",
    "Representation",
    "Reservation",
    "SealedMemory",
    "Stats",
    "Storage",
    "StoredBytes",
]
