"""The picture for the README: how fast a whole table arrives."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from bench.results import Record, Results

_OURS, _LIMIT, _OTHER = "#3b6fb6", "#9aa5b1", "#c9ced6"
_LABELS = {
    "framewire": "framewire, trusted peer",
    "framewire-validated": "framewire, every value checked",
    "framewire-one-host": "framewire, one host",
    "raw-sendall": "raw socket, sendall",
    "raw-reno": "raw socket, sendall, not paced",
    "raw-sendfile": "raw socket, sendfile",
    "flight": "Arrow Flight",
    "user-written": "Starlette + httpx + IPC",
    "parquet-http": "Parquet over HTTP",
    "mcp-sd": "mcp-sd (JSON rows)",
    "vgi-rpc": "vgi-rpc, HTTP",
    "vgi-rpc-shm": "vgi-rpc, shared memory",
}


def draw(results: Results, folder: Path) -> list[Path]:
    """Write ``bulk.png`` and ``bulk.svg``: lineitem to a frame, results kept, in GB/s.

    Returns:
        The files; none where there is nothing to draw or no matplotlib.
    """
    records = [r for r in results.records if (r.suite, r.case, r.mode) == ("bulk", "lineitem", "kept")]
    # Nothing is moved there: as a speed it has no meaning.
    records = [r for r in records if r.contender != "framewire-one-host"]
    if len(records) < 2 or importlib.util.find_spec("matplotlib") is None:
        return []
    records.sort(key=_speed)
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "framewire"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.45 * len(records) + 1.2), layout="constrained")
    bars = axes.barh(
        [_LABELS[r.contender] for r in records], [_speed(r) for r in records], color=[_colour(r) for r in records]
    )
    axes.bar_label(bars, [f"{_speed(r):.2f}" if _speed(r) >= 0.1 else f"{_speed(r):.3f}" for r in records], padding=4)
    axes.set_xlabel("GB/s (medians)")
    rows = max(r.rows for r in records)
    title = f"TPC-H lineitem ({rows / 1e6:.1f} M rows), from one process into a Polars frame in another"
    figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)
    paths = [folder / "bulk.png", folder / "bulk.svg"]
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def _speed(record: Record) -> float:
    """GB/s of the table's Arrow bytes, whatever crossed the wire."""
    return record.nbytes / record.median / 1e9


def _colour(record: Record) -> str:
    if record.contender.startswith("framewire"):
        return _OURS
    return _LIMIT if record.contender.startswith("raw") else _OTHER
