"""Crashes and pauses at every point of the life of backups of a driver.

As in `test_share_backup_crashes`, for those that a back end makes itself.
"""

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support import share_backups
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(50, 4)


def prepare(cloud):
    other = cloud.create_share()
    return share_backups.create(cloud, **share_backups.BY_DRIVER), other


def create(cloud, prepared):
    share = share_backups.show(cloud.api, prepared[0])['share_id']
    share_backups.request(
        cloud.api, share, expect=None, **share_backups.BY_DRIVER
    )
    cloud.settle()


def fail(cloud, prepared):
    cloud.driver().fail_next('create_backup_continue')
    create(cloud, prepared)


def create_and_delete(cloud, prepared):
    create(cloud, prepared)
    for backup in share_backups.listed(cloud.api):
        share_backups.delete(cloud.api, backup['id'], expect=None)
    cloud.settle()


def restore(cloud, prepared):
    share_backups.restore(cloud.api, prepared[0], expect=None)
    cloud.settle()


def restore_to_another(cloud, prepared):
    share_backups.restore(cloud.api, *prepared, expect=None)
    cloud.settle()


def delete(cloud, prepared):
    share_backups.delete(cloud.api, prepared[0], expect=None)
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (
        create,
        fail,
        create_and_delete,
        restore,
        restore_to_another,
        delete,
    )
}


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('backups'),
        prepare,
        kind=crash_images.CrashableCloud,
        backends=['alpha'],
    ) as begin:

        def begin_polling(backend_conf='', **kwargs):
            return begin(
                backend_conf=f'dummy_driver_backup_steps = 2\n{backend_conf}',
                extra_conf=share_backups.SHORT_POLL_INTERVALS,
                **kwargs,
            )

        yield begin_polling


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
