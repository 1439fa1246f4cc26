"""One run: what is to be measured, by whom, and the pairs of processes that do it."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import memory
from bench.config import Plan
from bench.contenders import CONTENDERS, Contender, versions
from bench.datasets import UNSCALED
from bench.netns import Link
from bench.process import Child, ChildError
from bench.results import Record, Results, amount

versions_of = functools.cache(versions)
_MUCH = 2 << 30


@dataclass
class Pair:
    """A contender's server and client, with one table published."""

    contender: Contender
    server: Child
    client: Child
    table: dict[str, Any]

    def handles(self, count: int) -> list[str]:
        """Handles for ``count`` fetches."""
        made: list[str] = self.server.call("bench.sides:handles", count=count)
        return made

    def fetch(
        self, count: int, *, warmup: int, keep: bool = False, check: bool = True, **selection: Any
    ) -> dict[str, Any]:
        """``count`` fetches after ``warmup``; whole tables are compared with what was published.

        Raises:
            ChildError: A fetch failed, or another table arrived.
        """
        got: dict[str, Any] = self.client.call(
            "bench.sides:fetch",
            handles=self.handles(count + warmup),
            keep=keep,
            warmup=warmup,
            names=self.table["names"],
            **selection,
        )
        whole = got["shape"][0] == self.table["rows"] and got["shape"][1] - self.table["columns"] in (0, 1)
        if check and got["fingerprint"] and not whole:
            raise ChildError(f"{got['shape']} arrived where {self.table['rows']} rows were published")
        if check and self.contender.exact and got["fingerprint"] not in ("", self.table["fingerprint"]):
            raise ChildError("other values arrived than were published")
        return got

    def record(self, suite: str, case: str, samples: list[float], **more: Any) -> Record:
        """A record with the facts of this pair filled in."""
        facts = {"publish_seconds": self.table["seconds"]} | more.pop("facts", {})
        sizes = {key: self.table[key] for key in ("rows", "columns", "nbytes")} | more
        return Record(
            suite=suite,
            contender=self.contender.name,
            case=case,
            samples=tuple(samples),
            client_peak_rss_bytes=self.client.peak_rss_bytes(),
            server_peak_rss_bytes=self.server.peak_rss_bytes(),
            versions=versions_of(self.contender),
            facts=facts,
            **sizes,
        )


class Session:
    """What the suites are given.

    Args:
        plan: Sizes.
        only: Names of contenders to measure, or None for all.

    Attributes:
        results: What was measured so far.
        failed: Whether anything went wrong.
    """

    def __init__(self, plan: Plan, only: list[str] | None = None) -> None:
        self.plan = plan
        self.results = Results()
        self._started = time.monotonic()
        self._only = only
        self._missing: dict[str, str | None] = {}
        self.failed = False

    def say(self, text: str) -> None:
        """A line of progress."""
        print(f"[{time.monotonic() - self._started:5.0f} s] {text}", file=sys.stderr, flush=True)

    def skip(self, what: str, reason: str) -> None:
        """Remember and show what was not measured."""
        if (what, reason) not in self.results.skipped:
            self.results.skipped.append((what, reason))
            self.say(f"skipped {what}: {reason}")

    def add(self, record: Record) -> None:
        """Keep a record and show it."""
        self.results.records.append(record)
        mode = f" {record.mode}" if record.mode else ""
        speed = (
            f", {record.nbytes / record.median / 1e9:.2f} GB/s" if record.unit == "seconds" and record.nbytes else ""
        )
        self.say(
            f"{record.suite:10} {record.case}{mode} {record.contender}: {amount(record.median, record.unit)}{speed}"
        )

    def attempt(self, what: str, measure: Callable[[], None]) -> None:
        """Run ``measure``; where a child fails, say so and go on with the others."""
        try:
            measure()
        except ChildError as exc:
            self.failed = True
            print(exc, file=sys.stderr)
            self.skip(what, f"failed: {str(exc).strip().splitlines()[-1]}")

    def choose(self, *names: str) -> Iterator[Contender]:
        """Those of ``names`` that were asked for and can run here, in that order."""
        for name in names:
            if self._only is not None and name not in self._only:
                continue
            if name not in self._missing:
                self._missing[name] = CONTENDERS[name].unavailable()
            reason = self._missing[name]
            if reason is None:
                yield CONTENDERS[name]
            else:
                self.skip(name, reason)

    def scale(self, dataset: str) -> float:
        """Scale of a dataset in this run."""
        return 1.0 if dataset in UNSCALED else self.plan.scale

    @contextmanager
    def pair(
        self, contender: Contender, dataset: str, *, scale: float | None = None, link: Link | None = None
    ) -> Iterator[Pair]:
        """Two fresh processes with ``dataset`` published between them.

        Args:
            contender: Whose processes.
            dataset: What is published.
            scale: In place of the plan's.
            link: What they reach each other over, in place of loopback; the contender's server then takes a ``host``.
        """
        options = dict(contender.options)
        at = {} if link is None else {"host": link.server_address}
        outer, inner = ((), ()) if link is None else (link.server, link.client)
        with self.child(contender, prefix=outer) as server, self.child(contender, prefix=inner) as client:
            client.send("bench.sides:start_client", module=contender.module, options=options)
            server.call("bench.sides:start_server", module=contender.module, options=options | at)
            size = self.scale(dataset) if scale is None else scale
            table = server.call("bench.sides:publish", dataset=dataset, scale=size, max_rows=contender.max_rows)
            client.receive()
            yield Pair(contender, server, client, table)

    def child(self, contender: Contender, *, timeout_seconds: float = 240.0, prefix: Sequence[str] = ()) -> Child:
        """A fresh process of a contender's kind."""
        return Child(
            contender.python(),
            quiet=contender.environment is not None,
            timeout_seconds=timeout_seconds,
            prefix=prefix,
            variables=contender.variables(),
        )

    def warm(self, nbytes: int) -> None:
        """Have as much memory at hand as a measurement is about to need.

        Once at the start is not enough: a guest that reports free pages gives them back to its host (``page_reporting`` in
        Linux), and the next contender would pay for them. Pages that were just freed are not the first to be handed out
        again, so for gigabytes nearly all that is free is touched (seen: 8 GiB after 10 GiB had been touched came at 2 GB/s,
        but for the last at 0.4).
        """
        least = memory.available_bytes() * 0.7
        memory.warm(int(least if nbytes > _MUCH else min(max(2 * nbytes, self.plan.scale * 2 * _MUCH), least)))

    def room_for(self, nbytes: int) -> bool:
        """Whether so much can be held beside everything else."""
        return nbytes < memory.available_bytes() * 0.7
