"""Processes leave work alone that needs a newer release than theirs."""

import pytest
import sqlalchemy as sa

from manila_lite import release
from manila_lite.context import RequestContext
from manila_lite.rpc.contract import Contract, durable
from manila_lite.work import table
from tests.support import sampling
from tests.unit.work.builders import claim, row, submit_work

pytestmark = sampling.dialects


CTX = RequestContext(project_id='p', request_id='r')
NEWER = release.NUMBER + 1


class AccessRpc(Contract):
    """As a later release may have it; the name makes known kinds of it."""

    topic, version, name = 'painters', '1.0', 'access'

    @durable(coalesced=True, repeatable=True)
    def sync_access(self, ctx, instance_id, colour='red'): ...

    @durable(repeatable=True)
    def paint_access(self, ctx, instance_id): ...


def submit(db, method, **args):
    return db.write(
        table.submit_durable,
        CTX,
        AccessRpc.methods[method],
        'blue',
        AccessRpc.methods[method].complete({'instance_id': 'i', **args}),
    )


def sweep(db, number):
    return db.read(
        table.sweep,
        ['blue'],
        ['painting.paint', 'access.sync_access', 'access.paint_access'],
        10,
        release=number,
    )


def test_older_processes_neither_find_nor_claim_newer_work(db):
    work_id = submit_work(db, needs_release=NEWER)
    before = row(db, work_id)
    assert sweep(db, release.NUMBER) == []
    assert claim(db, work_id) is None
    assert row(db, work_id) == before
    assert sweep(db, NEWER) == [(work_id, False)]
    assert claim(db, work_id, release=NEWER).id == work_id


def test_older_processes_do_not_take_over_newer_work(db):
    work_id = submit_work(db, needs_release=NEWER)
    assert claim(db, work_id, lease=-1.0, release=NEWER)
    assert sweep(db, release.NUMBER) == []
    assert claim(db, work_id, 'another', abandoned=True) is None
    assert sweep(db, NEWER) == [(work_id, True)]
    assert claim(db, work_id, 'another', abandoned=True, release=NEWER)


@pytest.mark.parametrize('number', [release.NUMBER, NEWER])
def test_work_without_a_needed_release_is_for_all(db, number):
    work_id = submit_work(db)
    assert sweep(db, number) == [(work_id, False)]
    assert claim(db, work_id, release=number)


def test_submitted_work_records_what_it_needs(db):
    known = submit(db, 'sync_access')
    assert row(db, known).needs_release is None
    new = submit(db, 'paint_access')
    assert row(db, new).needs_release == release.NUMBER


def test_coalesced_work_needs_what_its_last_request_needs(db):
    work_id = submit(db, 'sync_access')
    assert submit(db, 'sync_access', colour='blue') == work_id
    assert row(db, work_id).needs_release == release.NUMBER
    assert submit(db, 'sync_access') == work_id
    assert row(db, work_id).needs_release is None


def test_work_that_is_handed_over_needs_what_its_new_kind_needs(db):
    work_id = submit_work(db)
    held = claim(db, work_id)
    new = AccessRpc.methods['paint_access']
    db.write(table.hand_over, held, new, 'blue', {'instance_id': 'i'})
    found = row(db, work_id)
    assert (found.kind, found.needs_release) == (new.kind, release.NUMBER)


@pytest.mark.parametrize(
    'colour, stored, needed',
    [
        ('red', '{"instance_id":"i"}', None),
        ('blue', '{"instance_id":"i","colour":"blue"}', release.NUMBER),
    ],
)
def test_the_rest_of_work_needs_what_its_arguments_need(db, colour, stored, needed):
    work_id = submit(db, 'sync_access')
    held = claim(db, work_id)
    held.durable = AccessRpc.methods['sync_access']
    args = {'instance_id': 'i', 'colour': colour}
    db.write(table.continue_with, held, args)
    found = row(db, work_id)
    assert (found.args, found.needs_release) == (stored, needed)


def test_work_that_waits_says_why_and_counts_no_attempt(db):
    work_id = submit_work(db)
    held = claim(db, work_id)
    db.write(table.release_waiting, held, 30.0, 'for an upgrade')
    found = row(db, work_id)
    assert (found.state, found.attempt, found.error) == ('queued', 0, 'for an upgrade')
    assert found.next_try_at > found.created_at.timestamp()
    lost = claim(db, submit_work(db), lease=-1.0)
    taken = claim(db, lost.id, 'another', abandoned=True)
    db.write(table.release_waiting, taken, -1.0, 'for an upgrade')
    found = row(db, lost.id)
    assert (found.state, found.attempt, found.owner) == ('running', 0, None)
    assert db.read(
        lambda session: session.value(
            sa.select(table.WORK.c.error).where(table.WORK.c.id == lost.id)
        )
    ) == ('for an upgrade')
