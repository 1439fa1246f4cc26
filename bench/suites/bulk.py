"""bulk: a whole table, from the server's process into a Polars frame in the consumer's."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.session import Session

EVERYONE = (
    "raw-sendall",
    "raw-reno",
    "raw-sendfile",
    "framewire",
    "framewire-validated",
    "framewire-one-host",
    "flight",
    "user-written",
    "parquet-http",
    "mcp-sd",
    "vgi-rpc",
    "vgi-rpc-shm",
)
SOME = ("raw-sendall", "raw-reno", "raw-sendfile", "framewire", "framewire-validated", "framewire-one-host", "flight")
CASES = {
    "lineitem": EVERYONE,
    "lineitem_string": ("framewire", "framewire-validated", "framewire-one-host", "flight"),
    "flights": (*SOME, "user-written"),
    "numbers": (*SOME, "user-written", "vgi-rpc", "vgi-rpc-shm"),
    "text": SOME,
    "wide": SOME,
    "nested": SOME,
    "numbers_10mb": ("framewire-one-host",),
    "numbers_100mb": ("framewire-one-host",),
    "numbers_1gb": ("framewire-one-host",),
}


MAPPED_REPEATS = 50
"""A millisecond each."""


def run(session: Session) -> None:
    """Every case, with results dropped and with results kept."""
    for dataset in session.plan.bulk or CASES:
        for contender in session.choose(*CASES[dataset]):
            session.attempt(f"bulk {dataset} {contender.name}", partial(_measure, session, contender, dataset))


def _measure(session: Session, contender: Contender, dataset: str) -> None:
    """One pair: dropped first, since kept results would make the process's peak."""
    plan = session.plan
    # Nothing is copied there: a collection before it would leave the processor's caches cold, as before small fetches.
    mapped = contender.name == "framewire-one-host"
    with session.pair(contender, dataset) as pair:
        for mode in ("dropped", "kept"):
            # What is kept may be a copy all the same: text that is not in views is converted.
            repeats = MAPPED_REPEATS if mapped and mode == "dropped" else plan.repeats
            needed = 0 if mapped else pair.table["nbytes"] * (repeats + plan.warmup)
            if mode == "kept" and not session.room_for(needed):
                session.skip(f"bulk {dataset} kept", f"{needed >> 20} MiB of results do not fit into memory")
                continue
            if mode == "kept" and needed:
                session.warm(needed)
            got = pair.fetch(repeats, warmup=plan.warmup, keep=mode == "kept", collect=not mapped)
            session.add(pair.record("bulk", dataset, got["seconds"], mode=mode))
