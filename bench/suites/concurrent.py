"""concurrent: 64 downloads of 8 MB by 1, 4, 16 and 64 clients at once."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.session import Session

DOWNLOADS = 64
CLIENTS = (1, 4, 16, 64)


def run(session: Session) -> None:
    """Time for all the downloads together."""
    for contender in session.choose("raw-sendall", "framewire", "flight", "user-written"):
        session.attempt(f"concurrent {contender.name}", partial(_measure, session, contender))


def _measure(session: Session, contender: Contender) -> None:
    with session.pair(contender, "numbers_8mb") as pair:
        total = {"rows": pair.table["rows"] * DOWNLOADS, "nbytes": pair.table["nbytes"] * DOWNLOADS}
        for clients in CLIENTS:
            seconds = []
            for _ in range(6):
                got = pair.client.call(
                    "bench.sides:load", handles=pair.handles(DOWNLOADS), endless=False, clients=clients, seconds=60.0
                )
                seconds.append(got["seconds"])
            # The first is the warm-up.
            session.add(pair.record("concurrent", "64 x 8 MB", seconds[1:], mode=f"clients={clients}", **total))
