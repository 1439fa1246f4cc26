"""bulk: a whole table, from the server's process into a Polars frame in the consumer's."""

from __future__ import annotations

from bench.session import Pair, Session

EVERYONE = (
    "raw-sendall",
    "raw-sendfile",
    "framewire",
    "framewire-validated",
    "framewire-one-host",
    "flight",
    "user-written",
    "parquet-http",
    "mcp-sd",
    "vgi-rpc",
)
SOME = ("raw-sendall", "raw-sendfile", "framewire", "framewire-validated", "framewire-one-host", "flight", "user-written")
CASES = {
    "lineitem": EVERYONE,
    "lineitem_string": ("framewire", "framewire-validated", "framewire-one-host", "flight"),
    "flights": SOME,
    "numbers": SOME,
    "text": SOME,
    "wide": SOME,
    "nested": SOME,
    "numbers_10mb": ("framewire-one-host",),
    "numbers_100mb": ("framewire-one-host",),
    "numbers_1gb": ("raw-sendall", "raw-sendfile", "framewire", "framewire-one-host"),
}


def run(session: Session) -> None:
    """Every case, with results dropped and with results kept."""
    for dataset, names in CASES.items():
        for contender in session.choose(*names):
            with session.pair(contender, dataset) as pair:
                measure(session, pair, dataset)


def measure(session: Session, pair: Pair, dataset: str) -> None:
    """One pair: dropped first, since kept results would make the process's peak."""
    plan = session.plan
    for mode in ("dropped", "kept"):
        needed = pair.table["nbytes"] * (plan.repeats + plan.warmup)
        if mode == "kept" and not session.room_for(needed):
            session.skip(f"bulk {dataset} kept", f"{needed >> 20} MiB of results do not fit into memory")
            continue
        got = pair.fetch(plan.repeats, warmup=plan.warmup, keep=mode == "kept")
        session.add(pair.record("bulk", dataset, got["seconds"], mode=mode))
