"""Crashes at every point of a migration that the data service copies.

As in `test_share_migration_crashes`; the copy itself is stopped at every
point in `tests/unit/data/test_copying.py`.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import host_assisted
from tests.support import sampling
from tests.support import share_migrations as migrations
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(100, 8)


def prepare(cloud):
    migrations.create_type(cloud, snapshot_support='True')
    return host_assisted.create(cloud)


def migrate(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('beta').fail_next('create_share')
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()


def fall_back(cloud, share):
    """Let the driver fail at the start, half-way."""
    cloud.driver('alpha').half_fail_next('migration_start')
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype(cloud, share):
    host_assisted.start(cloud, share, expect=None, **migrations.to_gold(cloud))
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype_and_cancel(cloud, share):
    host_assisted.start(cloud, share, expect=None, **migrations.to_gold(cloud))
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (migrate, cancel, fail, fall_back, retype, retype_and_cancel)
}


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
