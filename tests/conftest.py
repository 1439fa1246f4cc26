"""What every test shares: the async backend and Hypothesis's profiles."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example of a property pays for imports, and CI's machines are shared.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("default", _COMMON, max_examples=200, derandomize=bool(os.environ.get("CI")))
settings.register_profile("long", _COMMON, max_examples=10_000)
settings.load_profile("default")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests (`pytest.mark.anyio`) run on asyncio: that is what the MCP SDK's servers and uvicorn run on."""
    return "asyncio"
