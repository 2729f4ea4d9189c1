"""Migrations that release 1 does not support wait for later releases."""

import pytest
import sqlalchemy as sa

from manila_lite import release
from manila_lite.db.models import engine
from tests.support import (
    cloud_snapshots as snapshots,
    network_migrations,
    share_migrations as migrations,
)
from tests.support.network_migrations import NetworkMigrationCloud

WORK = engine.Work.__table__
CHECK = 'before migration_check_compatibility'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()


@pytest.fixture
def share(cloud):
    return migrations.create_on_alpha(cloud)


def start(cloud, share, **options):
    """Start a migration.

    Returns the release that the work needs, in the queue of the scheduler and
    in that of the source.
    """
    needed = []

    def note():
        [row] = cloud.db.read(
            lambda session: session.rows(sa.select(WORK.c.needs_release))
        )
        needed.append(row.needs_release)

    migrations.start(cloud, share, **options)
    note()
    cloud.pause_at(CHECK, note)
    cloud.settle()
    assert not cloud.pending_pauses
    return needed


def test_a_plain_migration_needs_no_release(cloud, share):
    assert start(cloud, share) == [None, None]


def test_a_change_of_type_needs_this_release(cloud, share):
    gold = migrations.create_type(cloud)
    needed = start(cloud, share, new_share_type_id=gold)
    assert needed == [release.NUMBER, release.NUMBER]


def test_a_migration_with_snapshots_needs_this_release(cloud):
    snapshots.enable_snapshot_features(cloud)
    share = migrations.create_on_alpha(cloud)
    snapshots.create_available(cloud, share)
    needed = start(cloud, share, preserve_snapshots=True)
    assert needed == [release.NUMBER, release.NUMBER]


def test_a_migration_with_share_servers_needs_this_release(build_cloud):
    cloud = build_cloud(kind=NetworkMigrationCloud)
    share = network_migrations.create(cloud, cloud.add_network())
    needed = start(cloud, share)
    assert needed == [release.NUMBER, release.NUMBER]
