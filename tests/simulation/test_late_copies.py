"""A data service is paused at every change of a file, longer than its lease.

Meanwhile another one takes its work over and completes it, and clients write
to the share. Then the paused one goes on, and must not change any of that.
"""

import pathlib
import stat

import pytest

from tests.simulation import crash_images
from tests.simulation.crashing import crash_at_point
from tests.simulation.pausing import Another
from tests.support import (
    host_assisted,
    sampling,
    share_backups,
    share_migrations as migrations,
)
from tests.support.rewind import rewindable

STEPS = frozenset(
    {
        *('make_folder', 'make_directory', 'remove_tree', 'open_directory'),
        *('remove', 'copy_file', 'apply'),
    }
)
"""The steps of the gate in these stories."""

MOST = 2
"""Pauses that are tried per story, where not all are."""


class Backups:
    """A share with a backup, and what clients wrote after it."""

    kind, backends = crash_images.CrashableCloud, ('alpha',)

    @staticmethod
    def prepare(cloud):
        backup = share_backups.create(cloud)
        share = share_backups.show(cloud.api, backup)['share_id']
        folder = share_backups.content_of(cloud, share)
        (folder / 'below' / 'second').unlink()
        (folder / 'first').write_text('changed')
        (folder / 'more').write_text('more')
        return share, backup


class Creation(Backups):
    """A backup is created."""

    @staticmethod
    def run(cloud, prepared):
        share, _ = prepared
        share_backups.request(cloud.api, share, expect=None)
        cloud.settle()

    @staticmethod
    def is_over(cloud, prepared):
        return cloud.api.show(prepared[0])['status'] == 'available'

    @staticmethod
    def check(cloud, prepared, since):
        share, first = prepared
        assert cloud.api.show(share)['status'] == 'available'
        (made,) = {
            one['id']
            for one in share_backups.listed(cloud.api)
            if one['status'] == 'available'
        } - {first}
        (copy,) = pathlib.Path(cloud.conf.backup_folder).glob(f'{made}.*')
        assert texts(copy) == {'first': 'changed', 'more': 'more'}


class Restore(Backups):
    """It is restored; clients write to the share after that has ended."""

    @staticmethod
    def run(cloud, prepared):
        share_backups.restore(cloud.api, prepared[1], expect=None)
        cloud.settle()

    @staticmethod
    def is_over(cloud, prepared):
        return cloud.api.show(prepared[0])['status'] != 'backup_restoring'

    @staticmethod
    def check(cloud, prepared, since):
        share, backup = prepared
        status = cloud.api.show(share)['status']
        assert status in ('available', 'backup_restoring_error')
        if status != 'available':
            (message,) = cloud.api.get('/messages')['messages']
            assert message['resource_id'] == share
            assert 'was interrupted' in message['user_message']
        folder = share_backups.content_of(cloud, share)
        if since:
            assert_unchanged(folder)
        elif status == 'available':
            assert texts(folder) == share_backups.CONTENT
        assert share_backups.show(cloud.api, backup)['status'] == 'available'


class Removal(Backups):
    """A backup is deleted."""

    @staticmethod
    def run(cloud, prepared):
        share_backups.delete(cloud.api, prepared[1], expect=None)
        cloud.settle()

    @staticmethod
    def is_over(cloud, prepared):
        return share_backups.listed(cloud.api) == []

    @staticmethod
    def check(cloud, prepared, since):
        assert share_backups.listed(cloud.api) == []
        folder = pathlib.Path(cloud.conf.backup_folder)
        assert list(folder.iterdir()) == []


class Migration:
    """A share is copied to another back end, and the migration completed."""

    kind, backends = crash_images.CrashableCloud, ('alpha', 'beta')

    @staticmethod
    def prepare(cloud):
        migrations.create_type(cloud, snapshot_support='True')
        share = migrations.create_on_alpha(cloud)
        share_backups.fill(cloud, share)
        return share, None

    @staticmethod
    def run(cloud, prepared):
        host_assisted.start(cloud, prepared[0], expect=None)
        cloud.settle()
        if Migration.state(cloud, prepared) == 'data_copying_completed':
            migrations.complete(cloud, prepared[0])
            cloud.settle()

    @staticmethod
    def state(cloud, prepared):
        return migrations.task_state(cloud, prepared[0])

    @staticmethod
    def is_over(cloud, prepared):
        if Migration.state(cloud, prepared) != 'data_copying_completed':
            return False
        migrations.complete(cloud, prepared[0])
        return True

    @staticmethod
    def check(cloud, prepared, since):
        assert Migration.state(cloud, prepared) == 'migration_success'
        folder = share_backups.content_of(cloud, prepared[0])
        if since:
            assert_unchanged(folder)
        else:
            assert texts(folder) == share_backups.CONTENT


STORIES = (Creation, Restore, Removal, Migration)
each_story = pytest.mark.parametrize(
    'story', STORIES, ids=[story.__name__.lower() for story in STORIES]
)


def texts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob('*')
        if path.is_file()
    }


def write_as_client(folder):
    """Change what is there, close a directory and add a file."""
    for path in list(folder.rglob('*')):
        if path.is_file():
            path.write_text('written since')
    (folder / 'below').mkdir(exist_ok=True)
    (folder / 'below').chmod(stat.S_IRWXU)
    (folder / 'new').write_text('written since')


def assert_unchanged(folder):
    assert set(texts(folder).values()) == {'written since'}
    assert (folder / 'new').exists()
    assert stat.S_IMODE((folder / 'below').stat().st_mode) == stat.S_IRWXU


def is_file_step(point):
    return point.rpartition(' ')[2] in STEPS


def places(cloud):
    """Return the changes of files in the run so far, each with its number."""
    points = cloud.crash_points
    return [
        (point, points[: number + 1].count(point))
        for number, point in enumerate(points)
        if is_file_step(point)
    ]


@pytest.fixture(scope='module')
def beginnings(tmp_path_factory):
    """Return a function that begins a story from its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('manila_lite.data.progress.INTERVAL', 0.5)
        begun = {}

        def begin(story, **kwargs):
            key = story.backends, story.prepare
            if key not in begun:
                context = rewindable(
                    tmp_path_factory.mktemp('late'),
                    story.prepare,
                    kind=story.kind,
                    backends=story.backends,
                )
                begun[key] = context, context.__enter__()
            return begun[key][1](**kwargs)

        yield begin
        for context, _ in begun.values():
            context.__exit__(None, None, None)


@sampling.enumeration
@each_story
def test_late_data_service_changes_nothing_of_its_successor(beginnings, story):
    cloud, prepared = beginnings(story)
    Another(cloud)
    cloud.crash_at(None)
    story.run(cloud, prepared)
    story.check(cloud, prepared, since=False)
    found = places(cloud)
    assert len(found) >= 3
    for place in sampling.sample(found, MOST):
        pause_once(*beginnings(story), story, place)


def pause_once(cloud, prepared, story, place):
    point, times = place
    another = Another(cloud)
    since = []

    def meanwhile():
        another.take_over()
        if story.is_over(cloud, prepared):
            another.run()
            since.append(True)
            if story in (Restore, Migration):
                write_as_client(share_backups.content_of(cloud, prepared[0]))
        else:
            assert not point.startswith('at '), 'nobody took over'

    cloud.crash_at(None)
    cloud.pause_at(point, meanwhile, times)
    try:
        story.run(cloud, prepared)
        cloud.settle()
        assert not cloud.pending_pauses
        story.check(cloud, prepared, bool(since))
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'paused {point}, {times}: {error}')


@sampling.enumeration
@each_story
def test_data_service_killed_at_any_change_loses_no_byte(beginnings, story):
    """What clients write after a restore has begun is not written over."""
    cloud, prepared = beginnings(story)
    cloud.crash_at(None)
    story.run(cloud, prepared)
    numbers = [
        number for number, point in enumerate(cloud.crash_points) if is_file_step(point)
    ]
    for number in sampling.sample(numbers, MOST):
        cloud, prepared = beginnings(story)
        assert crash_at_point(cloud, number, story.run, cloud, prepared)
        kill_once(cloud, prepared, story)


def kill_once(cloud, prepared, story):
    written = story is Restore
    if written:
        write_as_client(share_backups.content_of(cloud, prepared[0]))
    cloud.restart()
    cloud.clock.advance(40)
    cloud.settle()
    if story is Migration:
        migrations.complete(cloud, prepared[0])
        cloud.settle()
    if written and cloud.api.show(prepared[0])['status'] == 'available':
        written = False  # nothing had been restored yet
    story.check(cloud, prepared, since=written)
    cloud.check_invariants()


def test_restore_goes_on_where_an_orderly_stop_has_ended_it(beginnings):
    cloud, prepared = beginnings(Restore)
    share, backup = prepared
    (runner,) = cloud.data.runners
    cloud.crash_at(None)
    cloud.pause_at('after copy_file', runner.executor.draining.end)
    share_backups.restore(cloud.api, backup)
    for _ in range(3):  # it may be claimed again before the end
        cloud.step()
    assert cloud.api.show(share)['status'] == 'backup_restoring'
    folder = share_backups.content_of(cloud, share)
    assert texts(folder) == {'first': 'one'}
    (folder / 'first').write_text('written since')
    cloud.restart()
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'available'
    assert texts(folder) == {'first': 'written since', 'below/second': 'two'}
    cloud.check_invariants()


def test_restore_whose_end_is_not_written_is_not_done_again(beginnings):
    cloud, prepared = beginnings(Restore)
    cloud.crash_at(None)
    Restore.run(cloud, prepared)
    last = max(
        number for number, point in enumerate(cloud.crash_points) if is_file_step(point)
    )
    # One transaction says that all is copied, the next one ends the work.
    _, ending = [
        number
        for number, point in enumerate(cloud.crash_points)
        if point == 'commit' and number > last
    ][:2]
    cloud, prepared = beginnings(Restore)
    assert crash_at_point(cloud, ending, Restore.run, cloud, prepared)
    assert cloud.api.show(prepared[0])['status'] == 'backup_restoring'
    folder = share_backups.content_of(cloud, prepared[0])
    write_as_client(folder)
    cloud.restart()
    cloud.clock.advance(40)
    cloud.settle()
    assert cloud.api.show(prepared[0])['status'] == 'available'
    assert_unchanged(folder)


def test_cancelled_copy_ends_before_its_next_change(beginnings):
    cloud, prepared = beginnings(Migration)
    steps = []

    def cancel():
        cloud.clock.advance(1)
        migrations.cancel(cloud, prepared[0])
        steps.append(len(cloud.crash_points))

    cloud.crash_at(None)
    cloud.pause_at('after copy_file', cancel)
    host_assisted.start(cloud, prepared[0])
    cloud.settle()
    (number,) = steps
    assert list(filter(is_file_step, cloud.crash_points[number:])) == []
    assert Migration.state(cloud, prepared) == 'migration_cancelled'
    cloud.check_invariants()


def test_emptied_backup_breaks_the_invariants(beginnings):
    cloud, (_, backup) = beginnings(Backups)
    cloud.check_invariants()
    (copy,) = pathlib.Path(cloud.conf.backup_folder).glob(f'{backup}.*')
    (copy / 'first').unlink()
    with pytest.raises(AssertionError, match=backup):
        cloud.check_invariants()


def test_emptied_backup_is_not_restored(beginnings):
    cloud, (share, backup) = beginnings(Backups)
    (copy,) = pathlib.Path(cloud.conf.backup_folder).glob(f'{backup}.*')
    (copy / 'first').write_text('')
    before = texts(share_backups.content_of(cloud, share))
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'backup_restoring_error'
    assert texts(share_backups.content_of(cloud, share)) == before
