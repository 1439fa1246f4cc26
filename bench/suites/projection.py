"""projection: 2 of lineitem's 16 columns, against the whole table in the same processes."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.contenders import Contender
from bench.session import Session

COLUMNS = ["l_orderkey", "l_extendedprice"]
CASES: tuple[tuple[str, dict[str, Any]], ...] = (("whole", {}), ("2 of 16", {"columns": COLUMNS}))


def run(session: Session) -> None:
    """Results dropped."""
    for contender in session.choose("framewire", "framewire-validated", "flight", "user-written", "parquet-http"):
        session.attempt(f"projection {contender.name}", partial(_measure, session, contender))


def _measure(session: Session, contender: Contender) -> None:
    with session.pair(contender, "lineitem") as pair:
        for case, selection in CASES:
            got = pair.fetch(session.plan.repeats, warmup=session.plan.warmup, check=not selection, **selection)
            # The bytes of a frame are those of the columns asked for and of framewire's _row_id.
            session.add(pair.record("projection", case, got["seconds"], nbytes=got["nbytes"]))
