"""publish: from a value that a tool returned to a handle, by kind of input, against the least that it must cost."""

from __future__ import annotations

import sys
from functools import partial

from bench.contenders import CONTENDERS
from bench.process import Child
from bench.results import Record
from bench.session import Session, versions_of

NUMBERS = "pa.Table of numbers"
CASES = (
    ("list[dict]", "publish"),
    ("list[dict]", "pa.array"),
    ("pa.Table", "publish"),
    ("pa.Table", "memfd"),
    (NUMBERS, "publish"),
    (NUMBERS, "memfd"),
    ("pl.DataFrame", "publish"),
    ("pd.DataFrame", "publish"),
)
DATASET = "lineitem"


def run(session: Session) -> None:
    """Each in a process of its own, results dropped and kept."""
    for _ in session.choose("framewire"):
        for kind, way in CASES:
            session.attempt(f"publish {kind} {way}", partial(_measure, session, kind, way))


def _measure(session: Session, kind: str, way: str) -> None:
    plan = session.plan
    dataset = "numbers_1gb" if kind == NUMBERS else DATASET
    with Child(sys.executable) as child:
        facts = child.call(
            "bench.publishing:make_input", kind=kind, dataset=dataset, scale=session.scale(dataset), rows=plan.rows
        )
        for mode in ("dropped", "kept"):
            if mode == "kept" and not session.room_for(facts["nbytes"] * (plan.repeats + plan.warmup)):
                session.skip(f"publish {kind} kept", "the results do not fit into memory")
                continue
            session.warm(facts["nbytes"] * (plan.repeats + plan.warmup))
            seconds = child.call(
                "bench.publishing:measure", way=way, repeats=plan.repeats, warmup=plan.warmup, keep=mode == "kept"
            )
            session.add(
                Record(
                    suite="publish",
                    contender="framewire" if way == "publish" else way,
                    case=kind,
                    mode=mode,
                    samples=tuple(seconds),
                    server_peak_rss_bytes=child.peak_rss_bytes(),
                    versions=versions_of(CONTENDERS["framewire"]),
                    **facts,
                )
            )
