"""Addresses in the database: none is allocated twice, all are freed."""

from concurrent import futures
import datetime

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.conf import network as options
from manila_lite.db.models import networks, share_servers
from manila_lite.db.session import Database
from manila_lite.network.standalone import StandaloneNetwork
from tests.support import databases, sampling

pytestmark = sampling.dialects


ALLOCATION = share_servers.NetworkAllocation.__table__
FREED = share_servers.FreedAddress.__table__
SERVER = share_servers.ShareServer.__table__
NETWORK = networks.ShareNetwork.__table__
SUBNET = networks.ShareNetworkSubnet.__table__
THREADS = 16


def plugin(db, label='user', **values):
    given = {opt.name: opt.default for opt in options.OPTS} | {
        'standalone_network_plugin_gateway': '10.0.0.1',
        'standalone_network_plugin_mask': '16',
    }
    given |= {
        f'standalone_network_plugin_{name}': value for name, value in values.items()
    }
    return StandaloneNetwork(db, given, group='section', label=label)


def add_servers(session, count):
    session.run(
        sa.insert(NETWORK),
        id='network',
        project_id='project',
        status='active',
        created_at=session.now,
    )
    session.run(
        sa.insert(SUBNET),
        id='subnet',
        share_network_id='network',
        created_at=session.now,
    )
    session.run_many(
        sa.insert(SERVER),
        [
            {
                'id': f'server-{number}',
                'host': 'node@alpha',
                'status': 'active',
                'is_auto_deletable': True,
                'share_network_id': 'network',
                'security_service_update_support': False,
                'network_allocation_update_support': False,
                'share_replicas_migration_support': False,
                'created_at': session.now,
            }
            for number in range(count)
        ],
    )


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    db.write(add_servers, 250)
    yield db
    db.dispose()


def allocated(db):
    return db.read(
        lambda session: session.rows(
            sa.select(ALLOCATION.c.share_server_id, ALLOCATION.c.ip_address)
        )
    )


def test_concurrent_allocations_are_all_different(db, database_url):
    # On database servers two connection pools, as two processes have.
    databases_used = [db] if db.dialect == 'sqlite' else [db, Database(database_url)]
    plugins = [plugin(each) for each in databases_used]
    with futures.ThreadPoolExecutor(THREADS) as pool:
        given = list(
            pool.map(
                lambda number: plugins[number % len(plugins)].allocate_network(
                    f'server-{number}', 'subnet', 4
                ),
                range(250),
            )
        )
    assert [len(rows) for rows in given] == [4] * 250
    found = [row.ip_address for row in allocated(db)]
    assert len(found) == len(set(found)) == 1000
    assert sum(each.retries for each in databases_used) == 0
    for each in databases_used[1:]:
        each.dispose()


def test_concurrent_allocations_and_releases_leave_no_stray_rows(db):
    network = plugin(db)

    def live(number):
        network.allocate_network(f'server-{number}', 'subnet', 2)
        if number % 2:
            assert db.write(network.deallocate_network, f'server-{number}') == 2
            assert db.write(network.deallocate_network, f'server-{number}') == 0

    with futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(live, range(60)))
    found = allocated(db)
    assert {row.share_server_id for row in found} == {
        f'server-{number}' for number in range(0, 60, 2)
    }
    assert len({row.ip_address for row in found}) == len(found) == 60


class StatementCounter:
    """Counts the SQL statements run inside the block."""

    def __init__(self, db):
        self.db, self.count = db, 0

    def __enter__(self):
        self.db.on_step = self._count_statement
        return self

    def _count_statement(self, name):
        self.count += name == 'statement'

    def __exit__(self, *args):
        self.db.on_step = lambda name: None


@pytest.fixture
def own(tmp_path):
    """A SQLite database, for tests where the database does not matter."""

    url = f'sqlite:///{tmp_path}/own.sqlite'
    databases.create_tables(url)
    db = Database(url)
    db.write(add_servers, 3)
    yield db
    db.dispose()


@pytest.mark.parametrize('count', [1, 100])
def test_statements_do_not_grow_with_the_batch(own, count):
    network = plugin(own)
    network.allocate_network('server-0', 'subnet', 1)
    with StatementCounter(own) as counted:
        network.allocate_network('server-1', 'subnet', count)
    assert counted.count == 7


def test_a_repeated_allocation_allocates_no_more(own):
    network = plugin(own)
    first = network.allocate_network('server-0', 'subnet', 2)
    again = network.allocate_network('server-0', 'subnet', 2)
    assert (
        [row.ip_address for row in again]
        == [row.ip_address for row in first]
        == ['10.0.0.2', '10.0.0.3']
    )


def test_addresses_and_the_subnet_have_the_network_attributes(own):
    network = plugin(own, network_type='vlan', segmentation_id=9, mtu=9000)
    (row,) = network.allocate_network('server-0', 'subnet', 1)
    attributes = {
        'network_type': 'vlan',
        'segmentation_id': 9,
        'mtu': 9000,
        'cidr': '10.0.0.0/16',
        'gateway': '10.0.0.1',
        'ip_version': 4,
    }
    subnet = own.read(lambda session: session.first(sa.select(SUBNET)))
    for name, value in attributes.items():
        assert getattr(row, name) == getattr(subnet, name) == value, name
    assert (row.label, row.share_network_subnet_id) == ('user', 'subnet')


def test_a_full_network_allocates_none(own):
    network = plugin(own, allowed_ip_ranges=['10.0.0.2-10.0.0.4'])
    network.allocate_network('server-0', 'subnet', 2)
    with pytest.raises(exception.NoFreeAddress, match='2 needed, 1 of 3 free'):
        network.allocate_network('server-1', 'subnet', 2)
    assert len(allocated(own)) == 2
    own.write(network.deallocate_network, 'server-0')
    assert len(network.allocate_network('server-1', 'subnet', 2)) == 2


def test_the_administrators_network_is_separate(own):
    user, admin = plugin(own), plugin(own, 'admin', gateway='10.9.0.1')
    user.allocate_network('server-0', 'subnet', 1)
    (row,) = admin.allocate_network('server-0', None, 1)
    assert (row.label, row.ip_address) == ('admin', '10.9.0.2')
    assert row.share_network_subnet_id is None
    own.write(user.deallocate_network, 'server-0')
    assert [row.ip_address for row in allocated(own)] == ['10.9.0.2']


def test_addresses_of_managed_servers_are_recorded_once(own):
    network = plugin(own)
    rest = network.manage_network_allocations(
        'server-0', 'subnet', ['10.0.0.2', '192.0.2.7']
    )
    assert rest == ['192.0.2.7']
    assert network.manage_network_allocations('server-0', 'subnet', ['10.0.0.2']) == []
    (row,) = network.allocate_network('server-1', 'subnet', 1)
    assert row.ip_address == '10.0.0.3'


def test_an_address_of_another_server_is_not_managed(own):
    network = plugin(own)
    network.allocate_network('server-0', 'subnet', 1)
    with pytest.raises(exception.NetworkException, match='server-0'):
        network.manage_network_allocations('server-1', 'subnet', ['10.0.0.2'])


def test_addresses_freed_first_are_used_first(db):
    network = plugin(db, allowed_ip_ranges=['10.0.0.10-10.0.0.14'])
    for number in range(4):
        network.allocate_network(f'server-{number}', 'subnet', 1)
    for number in (2, 0, 3):
        assert db.write(network.deallocate_network, f'server-{number}') == 1
    given = [
        network.allocate_network(f'server-{number}', 'subnet', 1)[0].ip_address
        for number in range(10, 14)
    ]
    assert given == ['10.0.0.14', '10.0.0.12', '10.0.0.10', '10.0.0.13']
    db.write(network.deallocate_network, 'server-12')
    network.manage_network_allocations('server-20', 'subnet', ['10.0.0.10'])
    db.write(network.deallocate_network, 'server-1')
    (row,) = network.allocate_network('server-21', 'subnet', 1)
    assert row.ip_address == '10.0.0.11'
    with pytest.raises(exception.NoFreeAddress):
        network.allocate_network('server-22', 'subnet', 1)


def test_an_address_freed_long_ago_is_like_one_never_used(db):
    network = plugin(db, allowed_ip_ranges=['10.0.0.10-10.0.0.11'])
    network.allocate_network('server-0', 'subnet', 1)
    db.write(network.deallocate_network, 'server-0')
    db.write(
        lambda session: session.run(
            sa.update(FREED).values(freed_at=session.now - datetime.timedelta(days=8))
        )
    )
    (row,) = network.allocate_network('server-1', 'subnet', 1)
    assert row.ip_address == '10.0.0.10'
    network.allocate_network('server-2', 'subnet', 1)
    db.write(network.deallocate_network, 'server-2')
    remembered = db.read(lambda session: session.rows(sa.select(FREED.c.ip_address)))
    assert [row.ip_address for row in remembered] == ['10.0.0.11']


def test_addresses_freed_and_allocated_concurrently_are_different(db):
    network = plugin(db, allowed_ip_ranges=['10.0.0.10-10.0.0.29'])

    def live(number):
        for _ in range(3):
            network.allocate_network(f'server-{number}', 'subnet', 2)
            db.write(network.deallocate_network, f'server-{number}')
        network.allocate_network(f'server-{number}', 'subnet', 2)

    with futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(live, range(10)))
        # A release that is requested twice at once is one.
        for number in range(10):
            released = [
                pool.submit(db.write, network.deallocate_network, f'server-{number}')
                for _ in range(3)
            ]
            assert sum(one.result() for one in released) == 2
            network.allocate_network(f'server-{number}', 'subnet', 2)
    found = [row.ip_address for row in allocated(db)]
    assert len(found) == len(set(found)) == 20
