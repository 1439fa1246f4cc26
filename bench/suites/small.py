"""small: a table of 100 x 8 numbers again and again: latency, and requests per second at 1, 8 and 64 clients."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.results import REQUESTS
from bench.session import Pair, Session

CLIENTS = (1, 8, 64)
HANDLES = 400
"""For a contender whose handles are good for one fetch: more than it answers in a sample."""


def run(session: Session) -> None:
    """Each contender in one pair of processes."""
    names = ("framewire", "framewire-validated", "flight", "user-written", "mcp-sd", "vgi-rpc", "vgi-rpc-shm")
    for contender in session.choose(*names):
        session.attempt(f"small {contender.name}", partial(_measure, session, contender))


def _measure(session: Session, contender: Contender) -> None:
    with session.pair(contender, "hundred") as pair:
        _latency(session, pair)
        for clients in CLIENTS:
            _rate(session, pair, clients)


def _latency(session: Session, pair: Pair) -> None:
    """p50 of each of five runs on a kept connection."""
    count = session.plan.latency_requests // (10 if pair.contender.single_use else 1)
    runs = [sorted(pair.fetch(count // 5, warmup=5, collect=False)["seconds"]) for _ in range(5)]
    facts = {"p99": sorted(s for run in runs for s in run)[int(count * 0.99) - 1]}
    session.add(pair.record("small", "latency p50", [run[len(run) // 2] for run in runs], nbytes=0, facts=facts))


def _rate(session: Session, pair: Pair, clients: int) -> None:
    rates = []
    for turn in range(6):
        handles = pair.handles(HANDLES if pair.contender.single_use else 1)
        got = pair.client.call(
            "bench.sides:load",
            handles=handles,
            endless=not pair.contender.single_use,
            clients=clients,
            seconds=session.plan.load_seconds,
        )
        if turn:  # the first is the warm-up
            rates.append(got["requests"] / got["seconds"])
    session.add(pair.record("small", "100 x 8", rates, mode=f"clients={clients}", unit=REQUESTS, nbytes=0))
