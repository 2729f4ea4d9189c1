"""Crashes at every point of the life of share backups.

As in `test_crashes`, for backups and the shares they are made of.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.support import sampling
from tests.support import share_backups
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(50, 4)


def create(cloud, backup):
    share = share_backups.show(cloud.api, backup)['share_id']
    share_backups.request(cloud.api, share)
    cloud.settle()


def restore(cloud, backup):
    share_backups.restore(cloud.api, backup)
    cloud.settle()


def delete(cloud, backup):
    share_backups.delete(cloud.api, backup)
    cloud.settle()


VERBS = {verb.__name__: verb for verb in (create, restore, delete)}


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('backups'),
        share_backups.create,
        kind=crash_images.CrashableCloud,
        backends=['alpha'],
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(begin, SEEDS, VERBS)
