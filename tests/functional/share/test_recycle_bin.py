"""Expired shares of the recycle bin are deleted."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def bin_node(build_node):
    """A node whose recycle bin expires at once."""
    node = build_node(default='soft_deleted_share_retention_time = 0')
    node.register()
    node.run()
    return node


def test_only_expired_shares_are_deleted(bin_node):
    node = bin_node
    kept, restored, gone = (node.create(1) for _ in range(3))
    node.run()
    node.ask('soft_delete', restored)
    node.ask('soft_delete', gone)
    assert node.ask('restore', restored) is True
    for backend in node.share.backends:
        backend.expire()
    node.run()
    assert {node.status(share) for share in (kept, restored)} == {'available'}
    assert len(node.rows(sa.text('SELECT id FROM shares'))) == 2
    assert node.problems() == []


@on_sqlite
def test_busy_database_ends_the_pass_over_the_recycle_bin(bin_node):
    node = bin_node
    share = node.create(1)
    node.run()
    node.ask('soft_delete', share)

    def fail(name):
        if name == 'commit':
            raise exception.DatabaseBusy

    node.db.on_step = fail
    expired = 0
    for backend in node.share.backends:
        try:
            backend.expire()
        except exception.DatabaseBusy:
            expired += 1
    assert expired == 1


@on_sqlite
def test_nothing_expires_early(build_node):
    node = build_node()
    node.register()
    share = node.create(1)
    node.run()
    node.ask('soft_delete', share)
    for backend in node.share.backends:
        backend.expire()
    assert node.status(share) == 'available'


@on_sqlite
def test_back_ends_with_similar_names_empty_only_their_own_recycle_bin(build_node):
    node = build_node(
        backends=['al_ha', 'alpha'], default='soft_deleted_share_retention_time = 0'
    )
    node.register()
    shares = [node.create(1) for _ in range(6)]
    node.run()
    for share in shares:
        node.ask('soft_delete', share)
    node.backend('al_ha').expire()
    node.run()
    left = {row.host for row in node.rows(sa.text('SELECT host FROM share_instances'))}
    assert left == {'node@alpha#pool'}


@on_sqlite
def test_full_recycle_bin_is_emptied_in_one_pass(bin_node):
    """Shares that cannot be deleted do not block others."""
    node = bin_node
    for _ in range(205):
        node.create(1)
    node.run()
    node.db.write(
        lambda session: session.run(
            sa.text(
                'UPDATE shares SET is_soft_deleted = true, '
                "scheduled_to_be_deleted_at = '2020-01-01 00:00:00.000000'"
            )
        )
    )
    node.db.write(
        lambda session: session.run(
            sa.text(
                "UPDATE share_instances SET status = 'error_deleting' "
                'WHERE id IN (SELECT id FROM share_instances LIMIT 101)'
            )
        )
    )
    for backend in node.share.backends:
        backend.expire()
    node.run()
    assert len(node.rows(sa.text('SELECT id FROM shares'))) == 101


def test_share_with_snapshots_does_not_keep_others_in_the_recycle_bin(bin_node):
    node = bin_node
    kept, gone = node.create(1), node.create(1)
    node.run()
    node.ask('soft_delete', kept)
    node.ask('soft_delete', gone)
    # As if it had been found on the back end only now.
    node.db.write(
        lambda session: session.run(
            sa.insert(snapshots.Snapshot.__table__),
            id='snapshot',
            project_id='project',
            share_id=kept,
            size=1,
            share_size=1,
            share_proto='NFS',
            created_at=session.now,
        )
    )
    for backend in node.share.backends:
        backend.expire()
    node.run()
    assert [row.id for row in node.rows(sa.text('SELECT id FROM shares'))] == [kept]
