"""shaped: a whole table over a link of a given rate, sent as it is and compressed: where codecs pay, and where no longer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench.contenders import CONTENDERS, Contender
from bench.netns import BURST_SECONDS, Link, LinkError
from bench.process import ChildError
from bench.session import Pair, Session

RATES: dict[str, float | None] = {"1 Gbit/s": 1e9, "2.5 Gbit/s": 2.5e9, "10 Gbit/s": 10e9, "unshaped": None}
SCALES = {"lineitem": 0.05, "flights": 0.5, "numbers": 0.125}
"""Parts of the tables: 300,005 rows of lineitem (65 MB) take half a second at 1 Gbit/s. ``numbers`` do not compress at all."""
OTHERS = ("raw-sendall", "flight", "user-written", "parquet-http")
OFFERS = {"framewire-plain": "", "framewire-lz4": "lz4", "framewire-zstd": "zstd"}
"""framewire's client with its offer replaced; ``framewire`` alone is what its users get."""


def run(session: Session) -> None:
    """Each contender in one pair of processes for each table, over one link whose rate changes."""
    try:
        with Link() as link:
            for rate in RATES.values():  # what the kernel has no queue for is known before anything is measured
                link.shape(rate)
            for dataset in session.plan.shaped:
                scale = SCALES[dataset] * session.scale(dataset)
                session.attempt(f"{dataset} of shaped", partial(_prepare, session, dataset, scale))
                for contender in _contenders(session):
                    measure = partial(_measure, session, link, contender, dataset, scale)
                    session.attempt(f"shaped {dataset} {contender.name}", measure)
    except LinkError as exc:
        session.skip("shaped", str(exc))


def _prepare(session: Session, dataset: str, scale: float) -> None:
    with session.child(CONTENDERS["framewire"]) as maker:
        maker.call("bench.sides:prepare", dataset=dataset, scale=scale)


def _contenders(session: Session) -> Iterator[Contender]:
    for contender in session.choose("framewire", *OTHERS):
        yield contender
        if contender.name == "framewire":
            for name, codecs in OFFERS.items():
                yield replace(
                    contender, name=name, module="bench.contenders.framewire_codecs", options=(("codecs", codecs),)
                )


def _measure(session: Session, link: Link, contender: Contender, dataset: str, scale: float) -> None:
    with session.pair(contender, dataset, scale=scale, link=link) as pair:
        for mode in RATES:
            _fetches(session, link, pair, dataset, mode)
        if dataset == "lineitem" and contender.name.startswith("framewire"):
            # A whole body is compressed once, a selection for every fetch: here all of it, column by column.
            for mode in RATES:
                _fetches(session, link, pair, "lineitem selected", mode, columns=pair.table["column_names"])


def _fetches(session: Session, link: Link, pair: Pair, case: str, mode: str, columns: list[str] | None = None) -> None:
    """Results dropped. The first fetch is no sample: a fact beside them, since it may wait for the server's compressing."""
    rate = RATES[mode]
    link.shape(rate)
    count = session.plan.repeats + 1
    before = link.received_bytes()
    first, *seconds = pair.fetch(count, warmup=0, columns=columns)["seconds"]
    wire_bytes = (link.received_bytes() - before) / count
    record = pair.record(
        "shaped", case, seconds, mode=mode, facts={"first_seconds": first, "wire_bytes": round(wire_bytes)}
    )
    if rate is not None and wire_bytes * 8 / rate > (record.median + BURST_SECONDS) * 1.05:
        raise ChildError(f"{wire_bytes:.0f} bytes in {record.median:.3f} s: the link is not held to {mode}")
    session.add(record)
