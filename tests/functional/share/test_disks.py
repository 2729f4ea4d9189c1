"""Which disk a back end may use, by what is recorded of the others."""

import threading
import uuid

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.db.queries.services import disks as rows, incarnations
from manila_lite.db.session import ConcurrentChange
from manila_lite.share.drivers.base import Disk
from manila_lite.share.manager.disks import DatabaseDisks
from tests.support.rows import insert_instance, insert_share

NODE = 'node@backend'
INCARNATION = services.ServiceIncarnation.__table__


def disk(pool='pool', identity=None, file_system='f1', location='here'):
    return Disk(pool, identity or str(uuid.uuid4()), file_system, location)


def lacks(id, name):
    return False


def holds(id, name):
    return True


@pytest.fixture
def registry(db):
    """`registry(host)` returns the record as a process of a host has it."""

    def make(host=NODE):
        incarnation = str(uuid.uuid4())
        db.write(
            incarnations.register,
            host=host,
            binary='manila-share',
            topic='manila-share',
            zone='nova',
            incarnation=incarnation,
            enabled=True,
            down_time=60.0,
        )
        return DatabaseDisks(db, host, incarnation, 60.0, 'share-%s')

    return make


@pytest.fixture
def add_share(db):
    def add(host=f'{NODE}#pool', **columns):
        def insert(session):
            share_id = insert_share(session)
            return insert_instance(
                session, share_id, **{'host': host, 'status': 'available'} | columns
            )

        return db.write(insert)

    return add


def refused(text):
    return pytest.raises(exception.StorageUnavailable, match=text)


def test_two_processes_with_a_disk_each_never_both_use_theirs(db, registry):
    """They start at the same moment, before there are any shares."""
    outcomes = []
    barrier = threading.Barrier(2)

    def claim(registry, found):
        barrier.wait(60)
        try:
            registry.claim(found, lacks)
        except exception.StorageUnavailable:
            outcomes.append(None)
        else:
            outcomes.append(found.identity)

    threads = [
        threading.Thread(target=claim, args=(registry(), disk())) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [identity for identity in outcomes if identity]
    (row,) = db.read(rows.list_all)
    assert (row.host, row.identity) == (f'{NODE}#pool', winner)


@pytest.mark.parametrize('same', ['host', 'identity'])
def test_no_name_has_two_disks_and_no_disk_two_names(db, same):
    """Whatever a process has read before: others may have written since."""
    known = {'host': f'{NODE}#pool', 'identity': 'disk'}
    other = {'host': f'{NODE}#other', 'identity': 'other'}
    db.write(rows.insert, *known.values(), 'f1', 'here')
    values = other | {same: known[same]}
    with pytest.raises(ConcurrentChange):
        db.write_once(rows.insert, *values.values(), 'f1', 'here')
    db.write(rows.insert, *other.values(), 'f1', 'there')


def test_disk_of_another_name_takes_no_place(db):
    for name in ('pool', 'other'):
        db.write(rows.insert, f'{NODE}#{name}', name, 'f1', 'here')
    with pytest.raises(ConcurrentChange):
        db.write_once(rows.replace, f'{NODE}#pool', 'pool', 'other', 'f1', 'here')


def test_one_disk_serves_under_one_name(registry):
    found = disk()
    registry().claim(found, holds)
    registry().claim(found, holds)
    for host in (NODE, 'other@backend'):
        for verb in ('check', 'claim'):
            place = registry(host)
            with refused(f'belongs to {NODE}#pool'):
                getattr(place, verb)(found._replace(pool='second'), holds)


@pytest.mark.parametrize('pool', ['pool', None])
def test_new_disk_takes_no_place_of_one_with_shares(registry, add_share, pool):
    place = registry()
    place.claim(disk(pool), lacks)
    add_share(status='error', launched_at=place.db.utcnow())
    for found in (disk(pool), disk(pool)._replace(identity=None)):
        with refused('new or another one; its own is'):
            place.check(found, holds)


def test_new_disk_takes_the_place_of_one_that_nothing_needs(db, registry):
    registry().claim(disk(), lacks)
    db.write(lambda session: session.run(sa.delete(INCARNATION)))
    found = disk()
    registry().claim(found, lacks)
    assert db.read(rows.find_at, f'{NODE}#pool').identity == found.identity


def test_upgraded_back_end_records_the_disk_with_its_shares(registry, add_share):
    """The release before recorded no disks."""
    present, missing = add_share(), add_share()
    add_share(host=f'{NODE}#other')
    with refused('none of the 2 shares'):
        registry().check(disk(), lacks)
    found = disk()
    registry().claim(
        found, lambda id, name: (id, name) == (present, f'share-{present}')
    )
    registry().check(found, lacks)
    assert missing != present


def test_copy_of_a_disk_is_refused(registry):
    found = disk()
    registry().claim(found, lacks)
    with refused('is a copy'):
        registry().check(found._replace(file_system='f2'), holds)
    registry().check(found._replace(file_system=None), holds)


def test_any_disk_takes_the_place_of_a_lost_one(db, registry, add_share):
    place = registry()
    place.claim(disk(), lacks)
    add_share()
    db.write(rows.mark_lost, f'{NODE}#pool')
    assert db.read(rows.is_declared_lost, NODE)
    found = disk()
    place.check(found._replace(identity=None), lacks)
    place.claim(found, lacks)
    assert not db.read(rows.is_declared_lost, NODE)
    with refused('its own is'):
        place.check(disk(), holds)
