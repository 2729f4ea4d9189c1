"""Crashes and pauses at every point of the migration of snapshots.

As in `test_share_migration_crashes`, for a share with two snapshots, one of
which clients may mount.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import cloud_snapshots as snapshots
from tests.support import sampling
from tests.support import share_migrations as migrations
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(50, 4)


def prepare(cloud):
    snapshots.enable_snapshot_features(cloud)
    share = migrations.create_on_alpha(cloud)
    for _ in range(2):
        snapshot = snapshots.create_available(cloud, share)
    snapshots.act(
        cloud,
        snapshot,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
    )
    return share


def start(cloud, share):
    migrations.start(cloud, share, expect=None, preserve_snapshots=True)
    cloud.settle()


def migrate(cloud, share):
    start(cloud, share)
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    start(cloud, share)
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('alpha').fail_next('migration_continue')
    start(cloud, share)


VERBS = {verb.__name__: verb for verb in (migrate, cancel, fail)}


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('migrations'),
        prepare,
        kind=crash_images.CrashableCloud,
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(begin, SEEDS, VERBS)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', VERBS)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, name, fencing, shared_database
):
    pausing.pause_verb(begin, VERBS[name], name, fencing, shared_database)
