"""`status inventory`: what runs where."""

import contextlib
import json
import os
import socket
import ssl
import threading
import time

import pytest

from manila_lite import release
from manila_lite.db import schema
from manila_lite.db.queries.services import disks
from tests.functional.cmd.test_upgrade_check import register
from tests.support import certificates
from tests.support.manage_command import manage
from tests.support.processes import free_port


def inventory(*args):
    return json.loads(manage('status', 'inventory', '--json', *args))


def test_services_of_each_node_with_schema_and_releases(state, db):
    for host, number in (('node-2@a', release.NUMBER), ('node-1@b', 1)):
        register(db, number, host=host)
    register(db, 1, host='node-2@a')
    found = inventory('--state-dir', state)
    assert found['schema'] == {
        'database': schema.HEAD,
        'newest_known': schema.HEAD,
        'release': f'{release.NUMBER} ({release.version()})',
    }
    assert [list(row.values()) for row in found['services']] == [
        ['node-1', 'manila-share', 'b', 'up', '1 (0.1)', None],
        [
            *('node-2', 'manila-share', 'a', 'up'),
            f'1 (0.1), {release.NUMBER} (0.{release.NUMBER})',
            None,
        ],
    ]
    printed = manage('status', 'inventory', '--state-dir', state)
    assert f'database: {schema.HEAD}\n' in printed
    assert '\ncertificates: none\n' in printed
    assert ['node-1', 'manila-share', 'b', 'up', '1', '(0.1)', '-'] in [
        line.split() for line in printed.splitlines()
    ]


def test_identities_of_disks(state, db):
    register(db, host='node@a')
    db.write(disks.mark_lost, 'node@a#fast')
    (disk,) = inventory('--state-dir', state)['disks']
    assert (disk['host'], disk['identity']) == ('node@a#fast', 'declared lost')


def test_age_of_the_newest_backup_of_each_kind(state, tmp_path):
    assert inventory('--state-dir', state, '--backups', '/nowhere')['backups'] == []
    for name in (
        'daily-20261128T003000Z.tar',
        'daily-20261129T003000Z.tar',
        'before-migration-20261101T120000Z.tar',
        # These are none.
        'daily-20261130T003000Z.tar.part',
        'notes.txt',
    ):
        (tmp_path / name).write_text('text')
    newest = tmp_path / 'daily-20261129T003000Z.tar'
    os.utime(newest, (0, time.time() - 3 * 3600))
    found = inventory('--state-dir', state, '--backups', str(tmp_path))['backups']
    assert [(row['kind'], row['number'], row['newest']) for row in found] == [
        ('before-migration', 1, 'before-migration-20261101T120000Z.tar'),
        ('daily', 2, newest.name),
    ]
    assert (found[1]['age_hours'], found[1]['bytes']) == (3.0, 4)


@contextlib.contextmanager
def serving(folder):
    """Yield the port of a server with the certificate in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / 'server.pem')

    def serve():
        while True:
            with contextlib.suppress(OSError):
                link, _ = listener.accept()
                if stopped.is_set():
                    link.close()
                    return
                context.wrap_socket(link, server_side=True).close()

    stopped = threading.Event()
    with socket.create_server(('127.0.0.1', 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield port
        finally:
            stopped.set()
            socket.create_connection(('127.0.0.1', port)).close()
            thread.join()


CONF = """
[DEFAULT]
transport_url = rabbit://a:word-of-broker@127.0.0.1:{port},a:word-of-broker@127.0.0.1:{closed}/manila
[oslo_messaging_rabbit]
ssl = {ssl}
ssl_ca_file = {folder}/ca.pem
[database]
connection = sqlite:///{state}/manila_lite.sqlite
[coordination]
backend_url = {locks}
"""


@pytest.fixture
def folder(tmp_path):
    certificates.make(tmp_path)
    return tmp_path


def certificates_of(configured, **values):
    return inventory(*configured(CONF.format(**values)))['certificates']


def test_ends_of_the_certificates_that_servers_present(state, configured, folder):
    (folder / 'other').mkdir()
    certificates.make(folder / 'other')
    closed = free_port()
    with serving(folder) as port:
        broker, second, locks = certificates_of(
            configured,
            port=port,
            closed=closed,
            ssl='true',
            folder=folder,
            state=state,
            locks=f'redis://:word-of-locks@127.0.0.1:{port}?ssl=true'
            f'&ssl_ca_certs={folder}/other/ca.pem',
        )
    tomorrow = time.strftime('%Y-%m-%d', time.gmtime(time.time() + 86400))
    assert broker['address'] == f'127.0.0.1:{port}'
    assert broker['ends'].startswith(tomorrow)
    assert broker['authority_ends'].startswith(tomorrow)
    assert (broker['days'], broker['problem']) == (0, None)
    assert second['address'] == f'127.0.0.1:{closed}'
    assert (second['ends'], 'refused' in second['problem']) == (None, True)
    assert (locks['server'], locks['ends']) == ('locks', None)
    assert 'certificate verify failed' in locks['problem']


def test_servers_without_tls_have_no_certificates(state, configured, folder):
    assert (
        certificates_of(
            configured,
            port=free_port(),
            closed=free_port(),
            ssl='false',
            folder=folder,
            state=state,
            locks='redis://:word-of-locks@127.0.0.1:1',
        )
        == []
    )
