"""Figures of what is tested elsewhere in a shorter form: hostile URLs, and the leases' state machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from framewire.client import PeerPolicy, fetch
from framewire.errors import TransferDeniedError
from tests.client.test_policy import CONFIGURED, corpus, listener, never_asked
from tests.store.test_leases import LeaseMachine

pytestmark = pytest.mark.faults


def test_hostile_urls(figure: Callable[[str], None]) -> None:
    texts = set()
    with listener() as counter:
        urls = corpus(counter.port)
        for url in urls:
            for policy in (PeerPolicy(resolver=never_asked), PeerPolicy(CONFIGURED, resolver=never_asked)):
                with pytest.raises(TransferDeniedError) as caught:
                    fetch(url, policy=policy)
                texts.add(str(caught.value))
        assert counter.connections == 0
    assert len(texts) == 1
    figure(f"hostile URLs: {len(set(urls))} under 2 policies, 0 connections, 1 text of refusal")


def test_leases(figure: Callable[[str], None]) -> None:
    runs = 10_000
    chosen = settings(max_examples=runs, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(LeaseMachine, settings=chosen)
    figure(f"leases: {runs} runs of the state machine on a clock of its own, every invariant held")
