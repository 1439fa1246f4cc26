"""steps: what each step of publishing and receiving takes on its own, in one process."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.results import Record
from bench.session import Session, versions_of

DATASETS = ("lineitem", "numbers")


def run(session: Session) -> None:
    """The tables of docs/explanation/performance.md."""
    for contender in session.choose("framewire"):
        for dataset in DATASETS:
            session.attempt(f"steps of {dataset}", partial(_measure, session, contender, dataset))


def _measure(session: Session, contender: Contender, dataset: str) -> None:
    with session.child(contender) as child:
        taken = child.call(
            "bench.steps:measure", dataset=dataset, scale=session.scale(dataset), repeats=session.plan.repeats
        )
        for name, nbytes, seconds in taken:
            session.add(
                Record(
                    suite="steps",
                    contender=contender.name,
                    case=dataset,
                    mode=name,
                    samples=tuple(seconds),
                    nbytes=nbytes,
                    server_peak_rss_bytes=child.peak_rss_bytes(),
                    versions=versions_of(contender),
                )
            )
