"""Drivers store data about resources; it lives as long as these do."""

from concurrent import futures
import threading
import uuid

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.session import Database
from manila_lite.share.manager.private_storage import DatabasePrivateStorage
from manila_lite.work import table
from tests.support import cloud_snapshots, sampling
from tests.support.dhss import SERVER, ShareServersCloud
from tests.support.replicated import ReplicatedCloud

DATA = engine.DriverPrivateData.__table__
DRIVER = '\nshare_driver = tests.support.remembering_driver.RememberingDriver'
SHARE = '5e7c2a90-1b4d-4f63-8a0e-9d2f7b6c1e35'
OTHER = '0c9d1f7e-6a35-4b28-9e40-7f2b8d5a3c16'


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    yield db
    db.dispose()


@pytest.fixture
def storage(db):
    return DatabasePrivateStorage(db)


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(url=database_url, backends=['alpha'], backend_conf=DRIVER)
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


def stored(db):
    """Return all values by id and key."""
    return db.read(
        lambda session: {
            (row.entity_uuid, row.key): row.value
            for row in session.rows(sa.select(DATA))
        }
    )


# The interface


def test_get_returns_one_value_several_or_all(storage):
    storage.update(SHARE, {'pool': 'fast', 'path': '/srv', 'size': '3'})
    assert storage.get(SHARE, 'pool') == 'fast'
    assert storage.get(SHARE, ['pool', 'size', 'none']) == {'pool': 'fast', 'size': '3'}
    assert storage.get(SHARE) == {'pool': 'fast', 'path': '/srv', 'size': '3'}
    assert storage.get(OTHER) == {}


def test_missing_key_has_the_default(storage):
    storage.update(SHARE, {'pool': 'fast'})
    assert storage.get(SHARE, 'path') is None
    assert storage.get(SHARE, 'path', '/') == '/'
    assert storage.get(OTHER, 'pool', default='slow') == 'slow'


def test_update_keeps_other_keys(storage):
    storage.update(SHARE, {'pool': 'fast', 'path': '/srv'})
    details = {'pool': 'slow', 'size': '3'}
    assert storage.update(SHARE, details) == details
    assert storage.get(SHARE) == {'pool': 'slow', 'path': '/srv', 'size': '3'}


def test_update_deletes_other_keys_on_request(storage):
    storage.update(SHARE, {'pool': 'fast', 'path': '/srv'})
    storage.update(OTHER, {'path': '/other'})
    storage.update(SHARE, {'pool': 'slow'}, delete_existing=True)
    assert storage.get(SHARE) == {'pool': 'slow'}
    storage.update(SHARE, {}, True)
    assert storage.get(SHARE) == {}
    assert storage.get(OTHER) == {'path': '/other'}


@pytest.mark.parametrize(
    'key, left',
    [
        ('pool', {'path', 'size'}),
        (['pool', 'size', 'none'], {'path'}),
        ([], {'pool', 'path', 'size'}),
        (None, set()),
    ],
)
def test_delete_removes_one_key_several_or_all(storage, key, left):
    storage.update(SHARE, {'pool': 'fast', 'path': '/srv', 'size': '3'})
    storage.update(OTHER, {'pool': 'slow'})
    storage.delete(SHARE, key)
    storage.delete(SHARE, key)
    assert set(storage.get(SHARE)) == left
    assert storage.get(OTHER) == {'pool': 'slow'}


def test_numbers_are_stored_as_texts(storage):
    storage.update(SHARE, {'size': 3, 'ratio': 1.5, 'thin': True})
    assert storage.get(SHARE) == {'size': '3', 'ratio': '1.5', 'thin': 'True'}


@sampling.dialects
def test_keys_and_values_are_kept_exactly(storage):
    values = {'Key': 'A', 'key': 'a', 'ключ': 'значение', 'long': 'x' * 1023}
    storage.update(SHARE, values)
    assert storage.get(SHARE) == values


@sampling.dialects
def test_all_spellings_of_an_id_are_one(storage):
    storage.update(SHARE.replace('-', '').upper(), {'pool': 'fast'})
    assert storage.get(uuid.UUID(SHARE), 'pool') == 'fast'
    storage.delete(SHARE)
    assert storage.get(SHARE) == {}


@pytest.mark.parametrize('id', ['', 'share-1', None, SHARE + '0'])
def test_id_that_is_no_uuid_is_refused(storage, id):
    for call in (storage.get, storage.delete):
        with pytest.raises(exception.InvalidInput, match='UUID'):
            call(id)
    with pytest.raises(exception.InvalidInput, match='UUID'):
        storage.update(id, {'pool': 'fast'})


@pytest.mark.parametrize(
    'details',
    [
        {'': 'x'},
        {'k' * 256: 'x'},
        {7: 'x'},
        {'key': 'secret' * 200},
        {'key': None},
        {'key': ['secret']},
        {'key': b'secret'},
        [('key', 'x')],
    ],
)
def test_unsuitable_details_are_refused_whole(storage, details):
    if isinstance(details, dict):
        details = {'good': 'x', **details}
    with pytest.raises(exception.InvalidInput) as error:
        storage.update(SHARE, details)
    assert 'secret' not in str(error.value)
    assert storage.get(SHARE) == {}


@sampling.dialects
def test_concurrent_updates_of_one_id_are_all_made(database_url, db):
    """By threads of two processes, which do not see each other's inserts."""
    other = Database(database_url)
    storages = [DatabasePrivateStorage(db), DatabasePrivateStorage(other)]
    rounds, writers = range(10), range(4)
    ready = threading.Barrier(len(writers))

    def write(number):
        for turn in rounds:
            ready.wait(timeout=60)
            storages[number % 2].update(
                SHARE, {f'{turn}': f'{turn}', f'{turn} by {number}': 'x'}
            )

    with futures.ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(write, number) for number in writers]:
            done.result()
    other.dispose()
    assert storages[0].get(SHARE) == {
        **{f'{turn}': f'{turn}' for turn in rounds},
        **{f'{turn} by {one}': 'x' for turn in rounds for one in writers},
    }


# The life of the data


def test_data_of_a_share_and_a_snapshot_is_deleted_with_them(cloud):
    kept = cloud.create_share()
    before = stored(cloud.db)
    assert before[kept, 'last_call'] == 'create_share'
    assert len(before) == 2
    share = cloud.create_share()
    snapshot = cloud_snapshots.create_available(cloud, share)
    assert len(stored(cloud.db)) == 6
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    assert len(stored(cloud.db)) == 4
    cloud.api.delete(share)
    cloud.settle()
    assert stored(cloud.db) == before


def test_data_of_an_unmanaged_share_is_deleted(cloud):
    share = cloud.create_share()
    cloud.api.act(share, 'unmanage')
    cloud.settle()
    assert stored(cloud.db) == {}


def test_worker_that_has_lost_its_claim_cannot_store(build_cloud, database_url):
    """The share is gone when it wakes: its data would stay for ever."""
    cloud = build_cloud(
        url=database_url,
        backends=['alpha'],
        backend_conf=f'dummy_driver_fencing = false{DRIVER}',
    )
    share = cloud.api.create()['id']
    others = cloud.competing_runners()
    taken_over = []

    def run_others():
        while sum(runner.step() for runner in others):
            pass

    def meanwhile():
        cloud.db.write(
            table.expire_leases,
            [queue for runner in cloud.runners for queue in runner.queues],
        )
        run_others()
        cloud.api.act(share, 'force_delete')
        run_others()
        assert stored(cloud.db) == {}
        taken_over.append(share)

    cloud.pause_at('before create_share', meanwhile)
    cloud.settle()
    assert taken_over
    assert stored(cloud.db) == {}


def test_driver_of_a_replica_reads_the_data_of_the_active_one(build_cloud):
    cloud = build_cloud(kind=ReplicatedCloud, backend_conf=DRIVER)
    share = cloud.create_share_on('alpha')
    replica = cloud.replicate(share)
    values = stored(cloud.db)
    assert values[replica, 'last_call'] == 'replicated create_share'
    cloud.api.request(
        'DELETE', f'/share-replicas/{replica}', expect=202, version='2.60'
    )
    cloud.settle()
    del values[replica, 'last_call']
    assert stored(cloud.db) == values


def test_data_of_a_share_server_is_deleted_with_it(build_cloud):
    cloud = build_cloud(
        extra_conf='delete_share_server_with_last_share = true',
        kind=ShareServersCloud,
        backends=['alpha'],
        backend_conf=DRIVER,
    )
    share = cloud.create_share_on_network(cloud.add_network())
    (server,) = cloud.rows(sa.select(SERVER))
    assert (server.id, 'last_call') in stored(cloud.db)
    cloud.api.delete(share)
    cloud.settle()
    assert cloud.servers() == []
    assert stored(cloud.db) == {}
