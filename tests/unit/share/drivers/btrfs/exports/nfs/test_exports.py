"""What clients of a real NFS server see."""

from contextlib import nullcontext
import ipaddress
import threading

import pytest

from manila_lite.share.drivers import ganesha
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.contract.values import AccessRuleForDriver
from manila_lite.share.drivers.nfs_clients import clients_of
from tests.drivers.crashes import interrupted_at
from tests.support import network_namespace
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.nfs_site import READER, STRANGER, WRITER

MIB = 1 << 20


def refused(status):
    return pytest.raises(NfsError, match=f'NFS4ERR_{status} ')


def test_clients_read_write_or_see_nothing(nfs):
    path = f'/shares/{nfs.create((WRITER, "rw"), (READER, "ro"))}'
    with nfs.client(WRITER) as client:
        client.write(path, 'notes', b'hello')
        assert client.read(path, 'notes') == b'hello'
        assert client.names_in(path) == {'notes'}
    with nfs.client(READER) as client:
        assert client.read(path, 'notes') == b'hello'
        with refused('ROFS'):
            client.write(path, 'other', b'')
    with nfs.client(STRANGER) as client:
        with refused('NOENT'):
            client.look_up(path)
        assert path.rpartition('/')[2] not in client.names_in('/shares')


def test_new_export_has_no_clients(nfs):
    path = f'/shares/{nfs.create()}'
    with nfs.client(WRITER) as client, refused('NOENT'):
        client.look_up(path)


def test_ipv6_clients_have_rules_of_their_own(nfs):
    path = f'/shares/{nfs.create(("::1", "rw"), ("::/0", "ro"))}'
    with nfs.client('::1') as client:
        client.write(path, 'notes', b'hello')
    with nfs.client(WRITER) as client, refused('NOENT'):
        client.look_up(path)


def test_first_matching_client_counts(nfs):
    path = f'/shares/{nfs.create((READER, "ro"), ("127.0.0.0/8", "rw"))}'
    with nfs.client(STRANGER) as client:
        client.write(path, 'notes', b'hello')
    with nfs.client(READER) as client, refused('ROFS'):
        client.write(path, 'notes', b'bye')


@pytest.fixture(scope='module')
def machine():
    with network_namespace.machine() as machine:
        yield machine


def clients_for(*networks):
    rules = [
        AccessRuleForDriver(
            id=network,
            share_id='share',
            access_type='ip',
            access_to=network,
            access_level=level,
        )
        for network, level in networks
    ]
    return clients_of(rules, refusal=ganesha.refusal)[0]


@pytest.mark.parametrize(
    'everyone, family', [('0.0.0.0/0', 0), ('::/0', 1), ('::ffff:0:0/96', 0)]
)
def test_rule_for_everyone_lets_in_all_clients_of_its_family(
    nfs, machine, everyone, family
):
    path = f'/shares/{nfs.create(*clients_for((everyone, "rw")))}'
    low_address = (WRITER, '::1')[family]
    with nfs.client(low_address) as client:
        client.write(path, 'notes', b'hello')
    for number, host in enumerate(machine.hosts):
        printed = ["b'hello'", 'written'] if number == family else ['2']
        assert machine.mount(host, nfs.port, path) == printed


@pytest.mark.parametrize('family', [0, 1])
def test_network_lets_its_clients_in_or_is_refused_by_its_width(nfs, machine, family):
    address = ipaddress.ip_address(machine.hosts[family])
    volume = nfs.create()
    with nfs.client(str(address)) as client:
        for width in range(address.max_prefixlen + 1):
            network = ipaddress.ip_network(f'{address}/{width}', strict=False)
            clients = clients_for((str(network), 'rw'))
            assert bool(clients) is (width not in range(100, 128))
            nfs.publish(volume, *clients)
            with nullcontext() if clients else refused('NOENT'):
                client.look_up(f'/shares/{volume}')
            nfs.publish(volume)


def test_rule_for_one_client_precedes_that_for_everyone(nfs):
    clients = clients_for(('0.0.0.0/0', 'rw'), (READER, 'ro'))
    path = f'/shares/{nfs.create(*clients)}'
    with nfs.client(READER) as client, refused('ROFS'):
        client.write(path, 'notes', b'hello')
    with nfs.client(WRITER) as client:
        client.write(path, 'notes', b'hello')


def test_ipv4_client_in_the_form_of_ipv6_is_let_in(nfs):
    path = f'/shares/{nfs.create(*clients_for((f"::ffff:{WRITER}", "rw")))}'
    with nfs.client(WRITER) as client:
        client.write(path, 'notes', b'hello')
    with nfs.client(READER) as client, refused('NOENT'):
        client.look_up(path)


def test_revoked_client_loses_its_open_file(nfs):
    volume = nfs.create((WRITER, 'rw'), (READER, 'rw'))
    path = f'/shares/{volume}'
    with nfs.client(WRITER) as writer, nfs.client(READER) as reader:
        files = [
            (client, client.open(path, f'file-{number}', create=True))
            for number, client in enumerate((writer, reader))
        ]
        for client, file in files:
            client.write_at(file, 0, b'before')
        nfs.publish(volume, (READER, 'ro'))
        with refused('ACCESS'):
            writer.write_at(files[0][1], 0, b'after')
        with refused('ACCESS'):
            writer.read_at(files[0][1], 0, 6)
        with refused('ROFS'):
            reader.write_at(files[1][1], 0, b'after')
        assert reader.read_at(files[1][1], 0, 6) == b'before'


def test_withdrawn_export_is_closed_for_open_files(nfs):
    volume = nfs.create((WRITER, 'rw'))
    with nfs.client(WRITER) as client:
        file = client.open(f'/shares/{volume}', 'file', create=True)
        for _ in range(2):
            nfs.exports.withdraw(Kind.SHARE, volume)
        with refused('STALE'):
            client.write_at(file, 0, b'after')
        with refused('NOENT'):
            client.look_up(f'/shares/{volume}')
    assert not list(nfs.root.glob(f'exports/**/*{volume}*'))


def test_clients_cannot_exceed_the_size(nfs):
    volume = nfs.create((WRITER, 'rw'))
    top = nfs.pool.path(Kind.SHARE, volume)
    kernel.set_limit(nfs.pool.top, kernel.subvolume_id(top), 4 * MIB)
    with nfs.client(WRITER) as client:
        with refused('DQUOT'):
            client.write(f'/shares/{volume}', 'large', bytes(8 * MIB))
        client.remove(f'/shares/{volume}', 'large')
        nfs.pool.used_bytes(Kind.SHARE, volume)
        client.write(f'/shares/{volume}', 'small', bytes(MIB))


def test_replaced_volume_is_exported_to_the_same_clients(nfs):
    volume = nfs.create((WRITER, 'rw'), (READER, 'ro'))
    path = f'/shares/{volume}'
    with nfs.client(WRITER) as client:
        client.write(path, 'notes', b'then')
        nfs.pool.take_snapshot(volume, f'snapshot-of-{volume}')
        client.write(path, 'notes', b'now!')
        file = client.open(path, 'notes', create=True)
        nfs.pool.replace(volume, f'snapshot-of-{volume}')
        nfs.exports.republish(Kind.SHARE, volume, nfs.pool.path(Kind.SHARE, volume))
        with refused('STALE'):
            client.write_at(file, 0, b'lost')
        assert client.read(path, 'notes') == b'then'
    with nfs.client(READER) as client, refused('ROFS'):
        client.write(path, 'notes', b'bye')


def test_snapshot_cannot_be_written_even_if_the_export_says_so(nfs):
    volume = nfs.create((WRITER, 'rw'))
    name = f'snapshot-of-{volume}'
    with nfs.client(WRITER) as client:
        client.write(f'/shares/{volume}', 'notes', b'then')
        nfs.pool.take_snapshot(volume, name)
        nfs.publish(name, (WRITER, 'rw'), kind=Kind.SNAPSHOT)
        assert client.read(f'/snapshots/{name}', 'notes') == b'then'
        with refused('ROFS'):
            client.write(f'/snapshots/{name}', 'notes', b'now')


def test_links_in_a_share_lead_nowhere_on_the_server(nfs):
    volume = nfs.create((WRITER, 'rw'))
    top = nfs.pool.path(Kind.SHARE, volume)
    (top / 'outside').symlink_to('/etc')
    with nfs.client(WRITER) as client, refused('.*'):
        client.look_up(f'/shares/{volume}/outside/passwd')


def test_rules_and_their_end_survive_a_power_failure(nfs, flushes):
    volume = nfs.create()
    folder = nfs.root / 'exports'
    file = folder / f'shares.{volume}.conf'
    nfs.publish(volume, (READER, 'ro'))
    assert flushes.include(file, folder)


def test_exports_of_nothing_that_is_known_are_ended(nfs):
    volume = nfs.create((WRITER, 'rw'))
    kept = nfs.create((WRITER, 'rw'))
    # As if the table had been lost with the machine.
    nfs.exports._numbers.release(f'shares.{volume}')
    nfs.exports._file(f'shares.{volume}').unlink()
    number = nfs.exports._numbers.find(f'shares.{kept}')
    nfs.daemons.server.remove(number)
    nfs.exports.reconcile()
    with nfs.client(WRITER) as client:
        client.look_up(f'/shares/{kept}')
        with refused('NOENT'):
            client.look_up(f'/shares/{volume}')
    nfs.exports._unmount(f'shares.{volume}')


def test_export_that_ends_during_a_start_is_not_added_again(nfs):
    volume = nfs.create((WRITER, 'rw'))
    number = nfs.exports._numbers.find(f'shares.{volume}')
    nfs.daemons.server.remove(number)
    withdrawal = threading.Thread(
        target=nfs.exports.withdraw, args=(Kind.SHARE, volume)
    )

    def withdraw():
        withdrawal.start()
        withdrawal.join(1)

    def start():
        nfs.exports.reconcile()
        withdrawal.join()

    assert interrupted_at(1, start, withdraw, _adds_exports)
    assert number not in nfs.daemons.server.numbers()


def test_export_that_a_starting_server_is_yet_to_have_is_ended(nfs):
    """Such a server answers before it has read what it exports."""
    volume = nfs.create((WRITER, 'rw'))
    number = nfs.exports.number(Kind.SHARE, volume)
    nfs.daemons.server.remove(number)

    def read_exports():
        nfs.other_daemons(nfs.port).server.apply(
            nfs.root / 'exports' / f'shares.{volume}.conf', number
        )

    assert interrupted_at(
        1, lambda: nfs.daemons.server.remove(number), read_exports, _lists_exports
    )
    assert number not in nfs.daemons.server.numbers()


def _lists_exports(event, args):
    return event == 'manila_lite.nfs' and args[0] == 'ShowExports'


def _adds_exports(event, args):
    return event == 'manila_lite.nfs' and args[0] == 'UpdateExport'


def test_exports_that_another_process_makes_survive_a_start(nfs):
    volumes = []

    def create():
        for _ in range(30):
            volumes.append(nfs.create((WRITER, 'rw')))

    creating = threading.Thread(target=create)
    creating.start()
    while creating.is_alive():
        nfs.exports.reconcile()
    creating.join()
    assert len(volumes) == 30
    with nfs.client(WRITER) as client:
        for volume in volumes:
            client.look_up(f'/shares/{volume}')
