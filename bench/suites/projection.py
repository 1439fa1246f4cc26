"""projection: 2 of lineitem's 16 columns, against the whole table in the same processes."""

from __future__ import annotations

from bench.session import Session

COLUMNS = ["l_orderkey", "l_extendedprice"]


def run(session: Session) -> None:
    """Results dropped."""
    names = ("framewire", "framewire-validated", "flight", "user-written", "parquet-http", "mcp-sd")
    for contender in session.choose(*names):
        with session.pair(contender, "lineitem") as pair:
            for case, selection in (("whole", {}), ("2 of 16", {"columns": COLUMNS})):
                got = pair.fetch(session.plan.repeats, warmup=session.plan.warmup, check=not selection, **selection)
                facts = {"frame_bytes": got["nbytes"]}
                # The bytes of a frame are those of the columns asked for and of framewire's _row_id.
                session.add(pair.record("projection", case, got["seconds"], nbytes=got["nbytes"], facts=facts))
