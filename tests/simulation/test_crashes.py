"""A process that dies at any place leaves nothing stuck and nothing lost.

Every verb is run once to count the places where a process may die (before
a statement, before and after a commit, before and after a driver call),
then once per place, dying there. After a restart all is quiet again and
every invariant holds; what was accepted is done or visibly failed.
"""

import shutil

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from tests.support.cloud import Cloud
from tests.support.cloud import Crash
from tests.support.seeds import seeds


def create(cloud, share_id):
    cloud.api.create(name='new', size=3, metadata={'key': 'value'})
    cloud.settle()


def delete(cloud, share_id):
    cloud.api.delete(share_id)
    cloud.settle()


def extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5})
    cloud.settle()


def force_extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5, 'force': True})
    cloud.settle()


def shrink(cloud, share_id):
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()


def force_delete(cloud, share_id):
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


def ensure(cloud, share_id):
    for backend in cloud.share.backends:
        backend.ensuring.page = 1  # so that one share takes two turns
    host, _, _ = cloud.api.show(share_id)['host'].partition('#')
    cloud.api.ensure(host)
    cloud.settle()


def start(cloud, share_id):
    """The back ends come up once more, not as they were."""
    service = services.Service.__table__
    cloud.db.write(lambda session: session.run(
        sa.update(service).values(backend_info='before')))
    for backend in cloud.share.backends:
        backend.set_up()
    cloud.settle()


VERBS = [create, delete, extend, force_extend, shrink, force_delete, ensure,
         start]


@pytest.fixture(scope='session')
def prepared(tmp_path_factory):
    """A cloud with one share of 2 GiB, as files to start from."""
    folder = tmp_path_factory.mktemp('prepared')
    cloud = Cloud(folder)
    share_id = cloud.create_share(size=2)
    cloud.db.dispose()
    return folder, share_id


@pytest.fixture
def begin(prepared, tmp_path):
    """Gives a copy of the prepared cloud, again and again."""
    folder, share_id = prepared
    number = 0

    def make(seed=0):
        nonlocal number
        number += 1
        copy = tmp_path / str(number)
        shutil.copytree(folder, copy)
        cloud = Cloud(copy, seed=seed, fill=False)
        cloud.restart()
        cloud.settle()  # its back ends are at another place than before
        return cloud, share_id
    return make


def points_of(begin, verb):
    cloud, share_id = begin()
    cloud.crash_at(None)
    verb(cloud, share_id)
    cloud.db.dispose()
    return len(cloud.points)


def die(cloud, share_id, verb, point):
    cloud.crash_at(point)
    try:
        verb(cloud, share_id)
    except Crash:
        return True
    return False


@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_crash_anywhere_breaks_no_invariant(begin, verb):
    count = points_of(begin, verb)
    assert count > 20
    for point in range(count):
        cloud, share_id = begin()
        assert die(cloud, share_id, verb, point), point
        where = cloud.points[-1]
        cloud.restart()
        cloud.settle()
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{verb.__name__} at {point} ({where}): {error}')
        cloud.db.dispose()
    print(f'{verb.__name__}: {count} points')


@pytest.mark.parametrize('seed', seeds(20))
def test_two_crashes_and_bad_messages_break_no_invariant(begin, seed):
    cloud, share_id = begin(seed)
    verb = cloud.chance.choice(VERBS)
    cloud.lose, cloud.double = 0.3, 0.3
    died = die(cloud, share_id, verb, cloud.chance.randrange(60))
    cloud.restart()
    cloud.crash_at(cloud.chance.randrange(80))
    try:
        cloud.settle()
    except Crash:
        died = True
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()
    assert died or cloud.points
    cloud.db.dispose()
