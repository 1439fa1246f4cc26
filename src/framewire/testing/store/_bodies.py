"""Bytes, tokens and budget: what a store keeps, under which name, and how much of it."""

from __future__ import annotations

import threading
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import settings

from framewire import wire
from framewire.arrow import read, write
from framewire.errors import InvalidTokenError, NoRoomError, SettingError
from framewire.handle import is_framewire_token, new_token
from framewire.split import add_row_id
from framewire.store import Body, BodyStore
from framewire.testing._check import check_tables, exact_values
from framewire.testing.store._base import (
    BUDGET_BYTES,
    LARGE_ROWS,
    THREADS,
    TOOL,
    StoreSuite,
    check_bytes,
    check_empty,
    free_bytes,
    in_threads,
    open_once,
    table_of,
    used_bytes,
)


class BodyTests(StoreSuite):
    """Tests of a store's bytes, tokens and budget."""

    @pytest.mark.parametrize("rows", [0, 1, 1000, LARGE_ROWS])
    def test_a_body_comes_back_byte_for_byte(self, store: BodyStore, rows: int) -> None:
        token, _ = self.put(store, table_of(rows))
        with store.open(token) as entry:
            assert entry.body.table.equals(table_of(rows))
            assert (entry.body.total_rows, entry.body.tool, entry.is_limited) == (rows, TOOL, False)
            check_bytes(entry, write.encode(table_of(rows)).checksum)

    def test_tables_of_every_type_come_back_exactly(self, store: BodyStore) -> None:
        def check(table: pa.Table) -> None:
            numbered = add_row_id(table)
            token, body = self.put(store, numbered)
            with store.open(token) as entry:
                check_bytes(entry, body.stored.checksum)
                for decoded in (entry.body.table, read.open_own(entry.form(views=False).buffer)):
                    assert decoded.column_names == numbered.column_names
                    assert list(map(exact_values, decoded.columns)) == list(map(exact_values, numbered.columns))
            store.revoke(token)

        check_tables(check, settings=settings(max_examples=20, database=None, deadline=None))
        check_empty(store)

    @pytest.mark.parametrize(("views", "codec"), [(True, None), (False, None), (True, "zstd"), (False, "lz4")])
    def test_other_forms_hold_the_same_rows(self, store: BodyStore, views: bool, codec: str | None) -> None:
        token, body = self.put(store)
        with store.open(token) as entry:
            form = entry.form(views=views, codec=codec)
            assert form.checksum == write.checksum([form.buffer])
            assert entry.form(views=views, codec=codec).checksum == form.checksum
            assert (form.etag == body.stored.etag) == (form.checksum == body.stored.checksum)
            decoded = read.open_own(form.buffer)
            assert decoded.to_pylist() == body.table.to_pylist()
            assert views or pa.string_view() not in decoded.schema.types
        store.revoke(token)
        check_empty(store)

    def test_a_form_is_refused_where_the_budget_cannot_hold_it(self, store: BodyStore) -> None:
        """Or made without its memory. The form is right and nothing is over the budget either way."""
        token, body = self.put(store)
        with store.open(token) as entry:
            with store.reserve(free_bytes(store)), suppress(NoRoomError):
                entry.form(views=False)
            free_bytes(store)
            assert read.open_own(entry.form(views=False).buffer)["text"].to_pylist() == body.table["text"].to_pylist()
            free_bytes(store)

    def test_tokens_have_the_wires_form_and_all_differ(self, store: BodyStore) -> None:
        tokens = [self.put(store, table_of(1))[0] for _ in range(50)]
        assert all(map(is_framewire_token, tokens))
        assert len(set(tokens)) == len(tokens)

    def test_what_is_not_a_token_of_the_store_is_unknown(self, store: BodyStore) -> None:
        token, _ = self.put(store)
        for text in (
            new_token(),
            "",
            "../../etc/passwd",
            "\0",
            "\ud800",
            token + "a",
            token.upper(),
            wire.TOKEN_PREFIX,
        ):
            with pytest.raises(InvalidTokenError) as by_open:
                open_once(store, text)
            with pytest.raises(InvalidTokenError) as by_revoke:
                store.revoke(text)
            with pytest.raises(InvalidTokenError) as by_acknowledge:
                store.acknowledge(text, "0" * 32, 1, "xxh3-128=00")
            codes = {by_open.value.code, by_revoke.value.code, by_acknowledge.value.code}
            assert codes == {InvalidTokenError.code}
        open_once(store, token)

    def test_a_new_store_holds_nothing_of_its_budget(self, store: BodyStore) -> None:
        check_empty(store)
        assert store.stats().budget_bytes == BUDGET_BYTES

    def test_bytes_are_promised_up_to_the_budget_and_given_back(self, store: BodyStore) -> None:
        with store.reserve(BUDGET_BYTES - 1), store.reserve(1):
            assert store.stats().reserved_bytes == BUDGET_BYTES
            with pytest.raises(NoRoomError):
                store.reserve(1)
        with pytest.raises(ZeroDivisionError), store.reserve(BUDGET_BYTES):
            raise ZeroDivisionError
        with pytest.raises(NoRoomError):
            store.reserve(BUDGET_BYTES + 1)
        check_empty(store)

    def test_a_promise_is_resized_within_the_budget(self, store: BodyStore) -> None:
        with store.reserve(1000) as reservation:
            reservation.resize(BUDGET_BYTES)
            with pytest.raises(NoRoomError):
                reservation.resize(BUDGET_BYTES + 1)
            assert store.stats().reserved_bytes == BUDGET_BYTES
            reservation.resize(10)
            assert store.stats().reserved_bytes == 10
        check_empty(store)

    def test_a_body_takes_over_as_much_of_its_promise_as_it_needs(self, store: BodyStore) -> None:
        with store.reserve(1 << 20, spill=True) as reservation:
            body = Body.of(table_of(1000), storage=reservation.storage)
            token = store.put(body, reservation, ttl_seconds=self.ttl_seconds)
        assert (store.stats().bodies, store.stats().reserved_bytes) == (1, 0)
        assert body.nbytes <= used_bytes(store) < 1 << 20
        store.revoke(token)
        check_empty(store)

    def test_a_body_that_outgrew_its_promise_and_the_budget_is_refused(self, store: BodyStore) -> None:
        with store.reserve(10) as reservation, store.reserve(free_bytes(store)):
            body = Body.of(table_of(1000), storage=reservation.storage)
            with pytest.raises(NoRoomError):
                store.put(body, reservation, ttl_seconds=self.ttl_seconds)
        check_empty(store)

    def test_a_limit_below_one_is_refused(self, store: BodyStore) -> None:
        with pytest.raises(SettingError):
            self.put(store, max_uses=0)
        check_empty(store)

    def test_ended_bodies_give_way_without_a_sweep(self, store: BodyStore) -> None:
        self.put(store)
        self.advance(self.ttl_seconds)
        with store.reserve(BUDGET_BYTES):
            assert free_bytes(store) == 0

    def test_threads_are_never_promised_more_than_the_budget(self, store: BodyStore) -> None:
        """Of eight that ask for a third of it, three get one."""
        all_asked = threading.Barrier(THREADS, timeout=60)

        def ask(_: int) -> bool:
            try:
                reservation = store.reserve(BUDGET_BYTES // 3)
            except NoRoomError:
                all_asked.wait()
                return False
            with reservation:
                all_asked.wait()
                return True

        for _ in range(20):
            assert sum(in_threads(ask)) == 3
        check_empty(store)
