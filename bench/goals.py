"""The goals, each with what this run measured, and ratios beyond them; ratios are formed within one run only.

How many lines of code some of them cost is in docs/explanation/performance.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import BYTES, SECONDS, Record, Results, amount, table
from bench.suites.publish import NUMBERS

Measure = Callable[[Record], float]
Ratio = Callable[[Results, str, Measure], float | None]
"""From results, a mode (``dropped`` or ``kept``) and the statistic to use (median or best) to a number."""

MODES = ("dropped", "kept")


@dataclass(frozen=True)
class Goal:
    """One line of the issue's table.

    Attributes:
        text: What is measured.
        needs: The bound.
        at_least: Whether the number must not be below the bound; otherwise not above it.
        ratio: Forms the number.
        unit: Behind the number: ``x``, ``ms`` or ``MiB``.
        modes: Modes in which it is measured.
    """

    text: str
    needs: float
    at_least: bool
    ratio: Ratio
    unit: str = "x"
    modes: tuple[str, ...] = ("",)

    def row(self, results: Results, mode: str) -> tuple[str, ...]:
        """Cells of the table: by the median, which decides, and by the best sample."""
        sign = ">=" if self.at_least else "<="
        head = (self.text, mode, f"{sign} {self.needs:g} {self.unit}")
        number, best = self.ratio(results, mode, _median), self.ratio(results, mode, _best)
        if number is None or best is None:
            return (*head, "-", "-", "not measured")
        met = number >= self.needs if self.at_least else number <= self.needs
        return (*head, f"{number:.3g}", f"{best:.3g}", "pass" if met else "MISS")


def _median(record: Record) -> float:
    return record.median


def _best(record: Record) -> float:
    return record.best


def times_faster(suite: str, case: str, ours: str, theirs: str, *, per_row: bool = False) -> Ratio:
    """Their time by ours: above 1 where framewire takes less. ``per_row`` where the tables differ in length."""

    def ratio(results: Results, mode: str, of: Measure) -> float | None:
        a, b = results.find(suite, ours, case, mode), results.find(suite, theirs, case, mode)
        if a is None or b is None:
            return None
        return of(b) / of(a) * (a.rows / b.rows if per_row else 1.0)

    return ratio


def _projection(results: Results, mode: str, of: Measure) -> float | None:
    """Part of the time that the columns take, by their part of the bytes."""
    part, whole = (results.find("projection", "framewire", case) for case in ("2 of 16", "whole"))
    if part is None or whole is None:
        return None
    return (of(part) / of(whole)) / (part.nbytes / whole.nbytes)


def _sparse(results: Results, mode: str, of: Measure) -> float | None:
    """Milliseconds above the small table."""
    few, small = (results.find("sparse", "framewire", case) for case in ("100 of 10 M", "100 of 100"))
    return None if few is None or small is None else (of(few) - of(small)) * 1e3


def _milliseconds(suite: str, case: str, contender: str) -> Ratio:
    def ratio(results: Results, mode: str, of: Measure) -> float | None:
        record = results.find(suite, contender, case, mode)
        return None if record is None else of(record) * 1e3

    return ratio


def _flat(results: Results, mode: str, of: Measure) -> float | None:
    """Time for 1 GB by the time for 10 MB."""
    small, large = (results.find("bulk", "framewire-one-host", f"numbers_{n}", mode) for n in ("10mb", "1gb"))
    return None if small is None or large is None else of(large) / of(small)


def _share_of_http(results: Results, mode: str, of: Measure) -> float | None:
    mapped, sent = (results.find("bulk", name, "lineitem", mode) for name in ("framewire-one-host", "framewire"))
    return None if mapped is None or sent is None else of(mapped) / of(sent)


def _rates(clients: int) -> Ratio:
    def ratio(results: Results, mode: str, of: Measure) -> float | None:
        ours, theirs = (results.find("small", n, "100 x 8", f"clients={clients}") for n in ("framewire", "mcp-sd"))
        return None if ours is None or theirs is None else of(ours) / of(theirs)

    return ratio


def _publish(kind: str, way: str) -> Ratio:
    def ratio(results: Results, mode: str, of: Measure) -> float | None:
        ours, least = results.find("publish", "framewire", kind, mode), results.find("publish", way, kind, mode)
        return None if ours is None or least is None else of(least) / of(ours)

    return ratio


def _consumer(results: Results, mode: str, of: Measure) -> float | None:
    """Peak above base by body; the best sample of a memory is the least."""
    record = results.find("memory", "framewire", "consumer above base")
    return None if record is None else of(record) / record.facts["body_bytes"]


def _server(case: str) -> Ratio:
    def ratio(results: Results, mode: str, of: Measure) -> float | None:
        record = results.find("memory", "framewire", f"server, each {case}")
        return None if record is None else of(record) / (1 << 20)

    return ratio


def _bulk(text: str, needs: float, theirs: str, *, ours: str = "framewire", per_row: bool = False) -> Goal:
    return Goal(text, needs, True, times_faster("bulk", "lineitem", ours, theirs, per_row=per_row), modes=MODES)


GOALS = (
    _bulk("lineitem to a frame, trusted, of raw sendall", 0.9, "raw-sendall"),
    _bulk("the same, of raw sendall that is not paced", 0.9, "raw-reno"),
    _bulk("lineitem to a frame, trusted, of raw sendfile", 0.7, "raw-sendfile"),
    _bulk("lineitem to a frame, trusted, of Flight", 5, "flight"),
    _bulk("lineitem to a frame, trusted, of vgi-rpc", 15, "vgi-rpc"),
    _bulk("lineitem to a frame, trusted, of mcp-sd (rows/s)", 500, "mcp-sd", per_row=True),
    _bulk("lineitem to a frame, validated, of raw sendall", 0.5, "raw-sendall", ours="framewire-validated"),
    _bulk("the same, of raw sendall that is not paced", 0.6, "raw-reno", ours="framewire-validated"),
    _bulk("lineitem to a frame, validated, of Flight", 3, "flight", ours="framewire-validated"),
    Goal(
        "one host: 1 GB of numbers", 5, False, _milliseconds("bulk", "numbers_1gb", "framewire-one-host"), "ms", MODES
    ),
    Goal("one host: 1 GB by 10 MB (by its batches)", 8, False, _flat, modes=MODES),
    Goal("one host: lineitem by its HTTP time", 0.05, False, _share_of_http, modes=MODES),
    Goal("2 of 16 columns: time by share of the bytes", 1.3, False, _projection),
    Goal("100 rows of 10 M above a table of 100 rows", 3, False, _sparse, "ms"),
    Goal("100 x 8: p50 on a kept connection", 1, False, _milliseconds("small", "latency p50", "framewire"), "ms"),
    *(Goal(f"100 x 8: requests per second, {n} clients, of mcp-sd", 3, True, _rates(n)) for n in (1, 8, 64)),
    Goal("publish list[dict], of pa.array", 0.7, True, _publish("list[dict]", "pa.array"), modes=MODES),
    Goal("publish pa.Table (lineitem), of writing a memfd", 0.4, True, _publish("pa.Table", "memfd"), modes=MODES),
    Goal("publish pa.Table of numbers, of writing a memfd", 0.8, True, _publish(NUMBERS, "memfd"), modes=MODES),
    Goal(
        "tool call to frame, 400,000 x 5 list[dict], of mcp-sd",
        20,
        True,
        times_faster("toolcall", "list[dict] to frame", "framewire", "mcp-sd"),
    ),
    Goal("consumer's peak above its base, by body", 1.1, False, _consumer),
    Goal("server, for each download of a whole body", 2, False, _server("whole body"), "MiB"),
    Goal("server, for each download of a projection", 2, False, _server("projection"), "MiB"),
)


def report(results: Results) -> str:
    """The goals, the bulk ratios of the other tables, and those of slow links, as Markdown."""
    rows = [goal.row(results, mode) for goal in GOALS for mode in goal.modes]
    text = "## Goals (by the median; beside it by the best sample)\n\n"
    text += table(("goal", "results", "needs", "median", "best", ""), rows)
    return text + _other_tables(results) + _links(results)


def _other_tables(results: Results) -> str:
    """framewire's part of the raw sockets' speed, and its multiple of Flight's, for every other table of the bulk suite."""
    others = [("framewire", t) for t in ("raw-sendall", "raw-reno", "raw-sendfile", "flight", "user-written")]
    others += [("framewire-validated", "raw-sendall"), ("framewire-validated", "flight")]
    cases = dict.fromkeys((r.case, r.mode) for r in results.records if r.suite == "bulk" and r.contender == "framewire")
    rows = []
    for case, mode in cases:
        numbers = [times_faster("bulk", case, ours, theirs)(results, mode, _median) for ours, theirs in others]
        rows.append((case, mode, *("-" if n is None else f"{n:.2f}" for n in numbers)))
    if not rows:
        return ""
    head = (
        "table",
        "results",
        "of sendall",
        "not paced",
        "of sendfile",
        "of Flight",
        "of user-written",
        "validated: of sendall",
        "of Flight",
    )
    return "\n## framewire's speed as a multiple of others', for each table\n\n" + table(head, rows)


_PLAIN = "framewire-plain"
_OVER_LINKS = {
    "framewire": "as it is",
    "framewire-lz4": "lz4",
    "framewire-zstd": "zstd",
    "raw-sendall": "raw sendall",
    "flight": "Flight",
    "user-written": "user-written",
    "parquet-http": "Parquet",
}


def _links(results: Results) -> str:
    """Over each link, everybody's time by that of framewire uncompressed; then the bytes that crossed."""
    seen = [r for r in results.records if r.suite == "shaped"]
    times: list[tuple[str, ...]] = []
    sizes: list[tuple[str, ...]] = []
    for case, mode in dict.fromkeys((r.case, r.mode) for r in seen):
        plain = results.find("shaped", _PLAIN, case, mode)
        found = [results.find("shaped", name, case, mode) for name in _OVER_LINKS]
        if plain is None:
            continue
        by_plain = ["-" if r is None else f"{r.median / plain.median:.2f}" for r in found]
        times.append((case, mode, amount(plain.median, SECONDS), f"{_speed(plain):.2f}", *by_plain))
        # The same over every link.
        if case not in [row[0] for row in sizes]:
            by_nbytes = [f"{r.facts['wire_bytes'] / r.nbytes:.2f}" if r else "-" for r in (plain, *found)]
            sizes.append((case, amount(plain.nbytes, BYTES), *by_nbytes))
    if not times:
        return ""
    head = ("table", "link", "uncompressed", "GB/s", *_OVER_LINKS.values())
    text = "\n## Over a link: time as a multiple of framewire's with nothing compressed\n\n" + table(head, times)
    text += "\nBytes that crossed it, as a multiple of the table's own:\n\n"
    return text + table(("table", "its own", "uncompressed", *_OVER_LINKS.values()), sizes)


def _speed(record: Record) -> float:
    return record.nbytes / record.median / 1e9
