"""Rows as Python tools return them. Needs nothing but the standard library: the reference's servers import it too."""

from __future__ import annotations

import random
from typing import Any

_CITIES = ("Lisboa", "Kraków", "Oslo", "Nairobi", "São Paulo", "Kyoto", "Wellington", "Quito")


def make_rows(count: int) -> list[dict[str, Any]]:
    """``count`` rows x 5 columns: an integer, a text, a float, a truth value and a longer text; one cell in 20 is None."""
    rng = random.Random(13)
    rows = []
    for i in range(count):
        share = None if i % 20 == 19 else rng.random() * 1000
        city = _CITIES[i % len(_CITIES)]
        rows.append(
            {"id": i, "city": city, "share": share, "late": i % 3 == 0, "note": f"row {i} of {city}, measured twice"}
        )
    return rows
