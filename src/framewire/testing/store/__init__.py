"""The conformance suite of body stores: the rules of :class:`framewire.store.BodyStore`, as tests to inherit.

The author of a store subclasses :class:`BodyStoreTests` in a file that pytest collects::

    from framewire.testing.store import BodyStoreTests


    class TestFolderStore(BodyStoreTests):
        def make_store(self, budget_bytes, clock):
            return FolderStore(self.folder, budget_bytes, clock=clock)

Importing this module imports pytest, and Hypothesis for the tables of one test. Call
``pytest.register_assert_rewrite("framewire.testing.store")`` in a ``conftest.py`` to see the values in failed assertions.
"""

from __future__ import annotations

from framewire.testing.store._base import BUDGET_BYTES, ManualClock
from framewire.testing.store._bodies import BodyTests
from framewire.testing.store._leases import LeaseTests
from framewire.testing.store._life import LifeTests

__all__ = ["BUDGET_BYTES", "BodyStoreTests", "ManualClock"]


class BodyStoreTests(BodyTests, LifeTests, LeaseTests):
    """Every test of the suite. Override ``make_store``, and of the following what the store needs.

    Methods:
        make_store: Returns an empty store of a given budget and clock.
        advance: Lets time pass, for a store that has a clock of its own.
        leftovers: Lists what a closed store left outside of this process.

    Attributes:
        ttl_seconds: Life of the handles that are put. A store with a clock of its own may need it short.
        lapse_seconds: Time after which an idle lease gives its use back.
        outlives_close: Whether handles survive ``close``, as in a store that several processes share.
    """
