"""sparse: 100 scattered rows of 10 million, against the whole of a table of 100 rows."""

from __future__ import annotations

import random
from functools import partial

from bench.contenders import Contender
from bench.session import Session

FETCHES = 100
CASES = (("tall", "100 of 10 M"), ("hundred_4", "100 of 100"))


def run(session: Session) -> None:
    """Medians of five runs, on kept connections."""
    for contender in session.choose("framewire", "framewire-validated", "flight", "user-written"):
        for dataset, case in CASES:
            session.attempt(f"sparse {case} {contender.name}", partial(_measure, session, contender, dataset, case))


def _measure(session: Session, contender: Contender, dataset: str, case: str) -> None:
    with session.pair(contender, dataset) as pair:
        rows = pair.table["rows"]
        ids = None if rows <= 100 else sorted(random.Random(13).sample(range(rows), 100))
        medians = []
        for _ in range(5):
            got = pair.fetch(FETCHES, warmup=5, check=ids is None, collect=False, row_ids=ids)
            medians.append(sorted(got["seconds"])[FETCHES // 2])
        # GB/s of a hundred rows would say nothing.
        session.add(pair.record("sparse", case, medians, rows=100, nbytes=0))
