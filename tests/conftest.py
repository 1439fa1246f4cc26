"""Shared by all tests: the async backend, Hypothesis's profiles, and the heap that the garbage collector may skip."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example of a property pays for imports, and CI's machines are shared.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("quick", _COMMON, max_examples=25)
settings.register_profile("full", _COMMON, max_examples=200, derandomize=True)
settings.register_profile("long", _COMMON, max_examples=10_000)
settings.load_profile("full" if os.environ.get("CI") else "quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt what collection made from garbage collection: 5,000 items and all libraries outlive every test.

    Tests that count descriptors collect garbage often, which took 0.2 s each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (`pytest.mark.anyio`) run on asyncio: that is what the MCP SDK's servers and uvicorn run on."""
    return "asyncio"
