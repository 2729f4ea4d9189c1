"""Concurrent requests about one migration, and the cost of 200 shares.

In real threads, over the API. No work runs in the meantime.
"""

from functools import partial

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.support import sampling
from tests.support.concurrent_calls import status_codes
from tests.support.server_migrations import MIGRATION, ServerMigrationCloud

CLIENTS = 10
MANY = 200

_SHARE = shares.Share.__table__
_INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(kind=ServerMigrationCloud)


@pytest.fixture
def server(cloud):
    return cloud.server_of(cloud.create_share_on_alpha(cloud.add_network(), size=2))


@sampling.dialects
def test_one_of_ten_concurrent_migration_requests_is_accepted(database_url, tmp_path):
    cloud = ServerMigrationCloud(tmp_path, url=database_url)
    server = cloud.server_of(cloud.create_share_on_alpha(cloud.add_network()))
    codes = status_codes(
        *[partial(cloud.start, server, expect=None)] * CLIENTS, rng=cloud.rng
    )
    assert sorted(codes) == [202] + [409] * (CLIENTS - 1)
    cloud.settle()
    codes = status_codes(*[lambda: cloud.cancel(server, None)] * CLIENTS, rng=cloud.rng)
    assert sorted(codes) == [202] + [400] * (CLIENTS - 1)
    cloud.settle()
    cloud.check_invariants()
    cloud.start_to_phase1(server)
    codes = status_codes(
        *[lambda: cloud.act(server, 'migration_complete')] * CLIENTS, rng=cloud.rng
    )
    assert sorted(codes) == [200] + [400] * (CLIENTS - 1)
    cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()


def test_server_with_a_share_in_the_recycle_bin_is_not_migrated(cloud):
    network = cloud.add_network()
    deleted, kept = (cloud.create_share_on_alpha(network) for _ in range(2))
    server = cloud.server_of(deleted)
    assert cloud.server_of(kept) == server
    cloud.api.act(deleted, 'soft_delete', None)
    before = cloud.state_summary()
    cloud.check(server, expect=409)
    answer = cloud.start(server, expect=409)
    assert 'recycle bin' in answer.text
    assert deleted in answer.text
    assert cloud.state_summary() == before
    cloud.api.act(deleted, 'restore', None)
    cloud.start_to_phase1(server)
    cloud.api.act(deleted, 'soft_delete', None, expect=403)


@sampling.dialects
def test_share_is_migrated_or_put_into_the_recycle_bin(database_url, tmp_path):
    cloud = ServerMigrationCloud(tmp_path, url=database_url)
    share = cloud.create_share_on_alpha(cloud.add_network())
    server = cloud.server_of(share)
    for seed in range(4):
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            partial(cloud.start, server, expect=None),
            partial(cloud.api.act, share, 'soft_delete', expect=None),
            rng=cloud.rng,
        )
        assert codes in ([202, 403], [409, 202])
        cloud.settle()
        if codes[0] == 202:
            cloud.cancel(server)
            cloud.settle()
        else:
            cloud.api.act(share, 'restore')
        cloud.check_invariants()
    cloud.db.dispose()


def test_either_cancel_or_complete_is_accepted(cloud, server):
    for seed in range(4):
        cloud.start_to_phase1(server)
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            partial(cloud.cancel, server, None),
            partial(cloud.act, server, 'migration_complete'),
            rng=cloud.rng,
        )
        assert codes in ([202, 400], [400, 200])
        there = cloud.progress(server)['destination_share_server_id']
        cloud.settle()
        cloud.check_invariants()
        if codes[1] == 200:
            server = there
            cloud.start_to_phase1(server, host='node@alpha')
            server = cloud.complete(server)['destination_share_server_id']
            cloud.settle()


def test_cancel_during_a_driver_call_wins(cloud, server):
    """The reply to the call comes too late and is ignored."""
    cloud.start(server)
    codes = []
    cloud.pause_at(
        'after share_server_migration_continue',
        lambda: codes.append(cloud.cancel(server, None).status_int),
    )
    cloud.settle()
    assert codes == [202]
    assert cloud.server(server)['task_state'] == 'migration_cancelled'
    assert cloud.has_no_incoming_servers()
    cloud.check_invariants()


def test_broken_migration_does_not_block_others(cloud, server):
    other = cloud.server_of(cloud.create_share_on_alpha(cloud.add_network()))
    for id in (server, other):
        cloud.start(id)
    cloud.settle()
    cloud.cancel(other)
    cloud.settle()
    # The row of its destination disappears.
    migration = next(
        row for row in cloud.migrations() if row.source_server_id == server
    )
    cloud.db.write(
        lambda session: session.run(
            sa.update(MIGRATION)
            .where(MIGRATION.c.id == migration.id)
            .values(destination_server_id='nowhere')
        )
    )
    cloud.act(
        server, 'reset_task_state', {'task_state': 'migration_driver_in_progress'}, 202
    )
    cloud.start_to_phase1(other)
    cloud.complete(other)
    cloud.settle()
    assert cloud.server(other, expect=404) is None
    assert cloud.server(server)['status'] == 'active'
    assert cloud.server(server)['task_state'] == 'migration_error'


@pytest.mark.parametrize(
    'word', [None, 'migration_error', 'server_migration_cancelled']
)
def test_reset_task_brings_the_server_to_rest(cloud, server, word):
    cloud.start_to_phase1(server)
    cloud.act(server, 'reset_task_state', {'task_state': word}, 202)
    cloud.settle()
    assert cloud.server(server)['status'] == 'active'
    cloud.check_invariants()
    cloud.start_to_phase1(server)
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()


_WRITTEN = [column for column in _INSTANCE.c if not column.computed]


def multiply(cloud, server):
    """Put many shares on the server instead of one, also on its back end."""
    driver = cloud.driver('alpha')
    (share,) = cloud.rows(sa.select(_SHARE))
    (instance,) = cloud.rows(sa.select(*_WRITTEN))
    record = driver.backend.state.shares.find(instance.id)

    def insert(session):
        for _ in range(MANY - 1):
            ids = session.new_id(), session.new_id()
            session.run(sa.insert(_SHARE), **{**share._mapping, 'id': ids[0]})
            session.run(
                sa.insert(_INSTANCE),
                **{**instance._mapping, 'id': ids[1], 'share_id': ids[0]},
            )
            driver.backend.state.shares.put(
                ids[1], record | {'export': f'share-{ids[1]}'}
            )

    cloud.db.write(insert)


def test_two_hundred_shares_cost_few_statements(tmp_path):
    cloud = ServerMigrationCloud(tmp_path)
    server = cloud.server_of(cloud.create_share_on_alpha(cloud.add_network()))
    cloud.start(server)
    cloud.settle()
    cloud.cancel(server)
    cloud.settle()
    began = cloud.statements
    cloud.start(server)
    of_one = cloud.statements - began
    cloud.settle()
    cloud.cancel(server)
    cloud.settle()
    multiply(cloud, server)
    began = cloud.statements
    cloud.start(server)
    assert cloud.statements - began == of_one <= 19
    cloud.settle()
    began = cloud.statements
    cloud.complete(server)
    while cloud.step():
        pass
    spent = cloud.statements - began
    print(f'start: {of_one} statements, complete of {MANY}: {spent}')
    assert spent <= 2 * MANY
    cloud.settle()
    assert len(cloud.driver('beta').inventory()) == MANY
    assert cloud.driver('alpha').inventory() == {}
    assert {row.status for row in cloud.rows(sa.select(_INSTANCE))} == {'available'}
    cloud.db.dispose()
