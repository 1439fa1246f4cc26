"""memory: what a fetch takes at its worst in the consumer, and what each concurrent download takes in the server."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.results import BYTES
from bench.session import Session

BODY = "numbers"
STALLED = "numbers_100mb"
DOWNLOADS = 16


def run(session: Session) -> None:
    """Both sides."""
    for contender in session.choose("framewire", "framewire-validated", "flight", "user-written", "parquet-http"):
        session.attempt(f"memory of {contender.name}", partial(_consumer, session, contender))
    for contender in session.choose("framewire"):
        for case, columns in (("whole body", None), ("projection", ["n0", "n1"])):
            session.attempt(f"memory, {case}", partial(_server, session, contender, case, columns))


def _consumer(session: Session, contender: Contender) -> None:
    """Five fresh consumers, each fetching the body once."""
    options = dict(contender.options)
    peaks = []
    with session.pair(contender, BODY) as pair, session.pair(contender, "hundred") as small:
        for _ in range(5):
            with session.child(contender) as consumer:
                consumer.call("bench.sides:start_client", module=contender.module, options=options)
                got = consumer.call("bench.sides:peak_above_base", small=small.handles(1)[0], handle=pair.handles(1)[0])
                peaks.append(got["peak"] - got["base"])
        # framewire's body holds _row_id as well.
        body = pair.table["nbytes"] + (8 * pair.table["rows"] if contender.name.startswith("framewire") else 0)
        session.add(pair.record("memory", "consumer above base", peaks, unit=BYTES, facts={"body_bytes": body}))


def _server(session: Session, contender: Contender, case: str, columns: list[str] | None) -> None:
    """Downloads that have stalled after their head, then all drained at once: the server's peak above its base, for each."""
    samples, length = [], 0
    with session.pair(contender, STALLED) as pair:
        handle = pair.handles(1)[0]
        for turn in range(6):
            base = pair.server.call("bench.sides:mark")
            length = pair.client.call("bench.sides:open_stalled", handle=handle, count=DOWNLOADS, columns=columns)
            pair.client.call("bench.sides:drain")
            peak = pair.server.peak_rss_bytes()
            if turn:  # the first starts threads
                samples.append(max(peak - base, 0) / DOWNLOADS)
        facts = {"downloads": DOWNLOADS, "body_bytes": length}
        session.add(pair.record("memory", f"server, each {case}", samples, unit=BYTES, facts=facts))
