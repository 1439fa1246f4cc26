"""shaped: a link of 1 Gbit/s in a network namespace, where compressing buffers can pay."""

from __future__ import annotations

from bench.session import Session


def run(session: Session) -> None:
    """Nothing to compare until framewire has codecs."""
    session.skip("shaped", "framewire sends no compressed buffers yet: there is nothing to compare on a slow link")
