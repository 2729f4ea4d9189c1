"""Crashes at every point of the migration of a share.

As in `test_crashes`, for the migration of one share to another back end.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support import share_migrations as migrations
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(100, 8)


def prepare(cloud):
    share = migrations.create_on_alpha(cloud)
    migrations.allow(cloud, share)
    migrations.create_type(cloud, snapshot_support='True')
    return share


def migrate(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('alpha').fail_next('migration_continue')
    migrations.start(cloud, share, expect=None)
    cloud.settle()


def retype(cloud, share):
    migrations.start(
        cloud, share, writable=False, expect=None, **migrations.to_gold(cloud)
    )
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype_and_cancel(cloud, share):
    migrations.start(
        cloud, share, writable=False, expect=None, **migrations.to_gold(cloud)
    )
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (migrate, cancel, fail, retype, retype_and_cancel)
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
