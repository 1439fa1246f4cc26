"""Mutates streams and hands them to framewire; prints one JSON object about what became of them.

Run as ``python -m tests.faults.mutant_worker FIRST COUNT JOURNAL``: mutants are numbered, and the number under way is in
JOURNAL, so that the death of this process names its mutant. A mutant is the same in every run.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import struct
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from framewire import wire
from framewire.arrow import read
from framewire.client._call import Headers
from framewire.client._plan import WirePlan
from framewire.errors import S2SPError
from framewire.frame import Form, to_form
from framewire.settings import Settings
from tests.faults.seeds import SEEDS, Seed

HANG_SECONDS: Final = 20
_MEMORY: Final = 8 << 30
_MAX_BYTES: Final = 64 << 20
_NUMBERS: Final = (0, 1, 2, 3, 7, 8, 15, 16, 64, 127, 128, 255, 256, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31)
_LONG: Final = (-1, -8, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63))


def mutant(number: int) -> tuple[Seed, bytes]:
    """Mutant ``number``: a seed, changed in one to four places."""
    source = random.Random(number)
    seed = SEEDS[number % len(SEEDS)]
    data = bytearray(seed.data)
    for _ in range(source.choice((1, 1, 1, 2, 3, 4))):
        if data:
            source.choice(_MUTATIONS)(data, source, seed)
    return seed, bytes(data)


def _place(data: bytearray, source: random.Random, seed: Seed, align: int) -> int:
    """Where to change something: three times in four in metadata, which are less than half of the bytes."""
    spans = seed.metadata if source.random() < 0.75 else seed.bodies
    start, end = source.choice(spans)
    last = max(len(data) - align, 0)
    return min(source.randrange(start, max(end, start + 1)) // align * align, last // align * align)


def _flip(data: bytearray, source: random.Random, seed: Seed) -> None:
    data[_place(data, source, seed, 1)] ^= 1 << source.randrange(8)


def _byte(data: bytearray, source: random.Random, seed: Seed) -> None:
    data[_place(data, source, seed, 1)] = source.choice((0, 1, 4, 0x7F, 0x80, 0xFF, source.randrange(256)))


def _int(data: bytearray, source: random.Random, seed: Seed) -> None:
    place = _place(data, source, seed, 4)
    data[place : place + 4] = struct.pack("<I", source.choice(_NUMBERS))


def _nudge(data: bytearray, source: random.Random, seed: Seed) -> None:
    place = _place(data, source, seed, 4)
    if place + 4 <= len(data):
        value = struct.unpack_from("<I", data, place)[0]
        data[place : place + 4] = struct.pack("<I", (value + source.choice((-8, -4, -1, 1, 4, 8))) % (1 << 32))


def _long(data: bytearray, source: random.Random, seed: Seed) -> None:
    place = _place(data, source, seed, 8)
    data[place : place + 8] = struct.pack("<q", source.choice((*_NUMBERS, *_LONG)))


def _copy(data: bytearray, source: random.Random, seed: Seed) -> None:
    size = source.choice((4, 8, 16, 32))
    here, there = _place(data, source, seed, 4), _place(data, source, seed, 4)
    data[there : there + size] = data[here : here + size]


def _cut(data: bytearray, source: random.Random, seed: Seed) -> None:
    place, size = _place(data, source, seed, 8), source.choice((1, 8, 64))
    del data[place : place + size]


def _insert(data: bytearray, source: random.Random, seed: Seed) -> None:
    place = _place(data, source, seed, 8)
    data[place:place] = source.randbytes(source.choice((1, 8, 64)))


def _end(data: bytearray, source: random.Random, seed: Seed) -> None:
    del data[source.randrange(len(data)) :]


def _message(data: bytearray, source: random.Random, seed: Seed) -> None:
    """Leave out a message, repeat it, or put it elsewhere."""
    start, end = source.choice(seed.messages)
    to = source.choice(seed.messages)[0]
    moved = data[start:end]
    if source.random() < 0.5:
        del data[start:end]
    if source.random() < 0.7:
        data[to:to] = moved


_MUTATIONS: Final[tuple[Callable[[bytearray, random.Random, Seed], None], ...]] = (
    *(_flip,) * 4, *(_byte,) * 3, *(_int,) * 3, *(_nudge,) * 3, *(_long,) * 3, _copy, _copy, _cut, _insert, _end, _message,
)  # fmt: skip


def _read(seed: Seed, data: bytes) -> pa.Table:
    """All that framewire does with a body of a stranger, and then what a consumer would."""
    table = read.decode(
        pa.py_buffer(data), rows=None, max_rows=1 << 20, max_bytes=_MAX_BYTES, allow_compression=seed.compressed
    )
    frame = to_form(table, Form.POLARS_FRAME)
    frame.write_ipc_stream(None)
    to_form(table, Form.ROWS)
    return table


def _fetched(seed: Seed, data: bytes) -> bool:
    """Whether the body of a fetch is taken, whose head announces the seed."""
    headers = Headers({wire.H_ROWS.lower(): str(seed.rows), wire.H_CHECKSUM.lower(): seed.checksum})
    target: Any = _Target
    try:
        WirePlan(target, None, None, Settings()).finish(200, headers, pa.py_buffer(data))
    except S2SPError:
        return False
    return True


class _Target:
    """As much of a target as a plan looks at."""

    trusted = False


def main() -> None:
    first, count, journal = int(sys.argv[1]), int(sys.argv[2]), os.open(sys.argv[3], os.O_RDWR | os.O_CREAT)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    outcomes: Counter[str] = Counter()
    foreign: list[str] = []
    wrong = same = 0
    for number in range(first, first + count):
        if number % 50 == 0:
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        os.pwrite(journal, struct.pack("<q", number), 0)
        seed, data = mutant(number)
        if data == seed.data:
            same += 1
            continue
        try:
            _read(seed, data)
            outcomes["accepted"] += 1
        except S2SPError as exc:
            outcomes[type(exc).__name__] += 1
        except BaseException as exc:
            foreign.append(f"{number} ({seed.name}): {type(exc).__module__}.{type(exc).__qualname__}: {exc!s:.200}")
        wrong += _fetched(seed, data)
    print(json.dumps({"tried": count - same, "outcomes": outcomes, "foreign": foreign, "wrong": wrong}))


if __name__ == "__main__":
    main()
