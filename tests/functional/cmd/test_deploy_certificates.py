"""TLS between nodes: certificates of deploy in real servers."""

import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

from cryptography import x509
from oslo_config import cfg
import pytest
import redis
import requests
import sqlalchemy as sa
from tooz import coordination

from manila_lite.cmd import certificates as ends, start
from manila_lite.db import engines
from manila_lite.db.session import Database
from tests.support import (
    certificates,
    deploy_scripts,
    mariadb_server,
    postgresql_server,
    requirements,
    sampling,
)
from tests.support.deploy_scripts import option, tool
from tests.support.processes import free_port, wait_until

pytestmark = sampling.suite('certificates of nodes', 7)

ADDRESS = '127.0.0.2'
OTHER = '127.0.0.3'
VARIABLES = f"""
NODE_IP={ADDRESS}
NODE_NAME=node
CONTROLLERS='{ADDRESS} {OTHER}'
"""
PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
ETC=$FOLDER SECRETS=$FOLDER/secrets NODE_SECRETS=$FOLDER/node-secrets
export TLS=$FOLDER/tls
CA=$TLS/ca.pem UNITS=$FOLDER/units RENEW=$FOLDER/renew
PATH=$FOLDER/bin:$PATH
read_variables
umask 077
read_secrets > /dev/null
use_servers
use_identity
"""
# Units are files of the test; what it is asked for goes to a program beside it.
SYSTEMCTL = """#!/bin/sh
case $1 in
    --quiet) exec test -e {folder}/active/$3 ;;
    reload) exec {folder}/reload/$2 ;;
esac
"""


class Controller:
    """A first controller whose files are in a folder of the test."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.tls = folder / 'tls'
        self.variables = VARIABLES
        for name in ('bin', 'units', 'active', 'reload', 'conf'):
            (folder / name).mkdir()
        systemctl = folder / 'bin/systemctl'
        systemctl.write_text(SYSTEMCTL.format(folder=folder))
        systemctl.chmod(0o755)

    def run(self, lines, **env):
        return deploy_scripts.shell(
            lines, self.variables, self.folder, PREPARE, FOLDER=str(self.folder), **env
        )

    def renew(self, **env):
        """Run the installed program, as systemd does."""
        return deploy_scripts.run(
            self.folder / 'renew',
            TLS=str(self.tls),
            **{'PATH': f'{self.folder}/bin:{deploy_scripts.PATH}', **env},
        )

    def set_up(self, *readers, **settings):
        """Issue certificates, for readers that use them from now on."""
        made = self.run('set_up_certificates; renew_certificates')
        with (self.tls / 'settings').open('a') as file:
            for reader, unit in readers:
                (self.folder / 'active' / unit).touch()
                conf = self.folder / 'conf' / reader
                conf.write_text(f'{self.tls}/{reader}.pem\n')
                file.write(f'CONF_OF[{reader}]={conf}\n')
            for name, value in settings.items():
                file.write(f'{name}={value}\n')
        return made

    def serial(self, name='server'):
        return x509.load_pem_x509_certificate(
            (self.tls / f'{name}.pem').read_bytes()
        ).serial_number

    def make_due(self):
        """Let the next run issue another certificate."""
        (self.tls / 'server.pem').unlink()

    def add_reload(self, unit, command):
        path = self.folder / 'reload' / unit
        path.write_text(f'#!/bin/sh\n{command}\n')
        path.chmod(0o755)

    def trusting(self):
        return ssl.create_default_context(cafile=str(self.tls / 'ca.pem'))


@pytest.fixture
def controller():
    deploy_scripts.require_root()
    tool('openssl')
    # Where users of servers can go, unlike in the directories of pytest.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Controller(pathlib.Path(folder))


def served(port, *options):
    """Return the serial number that a new connection gets."""
    ended = subprocess.run(
        [*(tool('openssl'), 's_client', '-connect', f'{ADDRESS}:{port}', *options)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    found = re.search('-----BEGIN.*?-----END CERTIFICATE-----', ended.stdout, re.S)
    assert found, ended.stdout + ended.stderr
    return x509.load_pem_x509_certificate(found[0].encode()).serial_number


def settings_of(text):
    """Return the settings `name = value` of a configuration file."""
    return dict(re.findall(r'^([\w.-]+) *= *(.+)$', text, re.M))


def check_renewal(controller, reader, unit, port, *options, **env):
    """A new certificate is served to new connections, without a restart."""
    first = controller.serial(reader)
    assert served(port, *options) == first
    assert controller.renew(**env) == ''
    controller.make_due()
    lines = controller.renew(**env).splitlines()
    assert f'wrote {controller.tls}/{reader}.pem' in lines
    assert f'let {unit} read its certificate again' in lines
    assert controller.serial(reader) != first
    assert served(port, *options) == controller.serial(reader)
    assert controller.renew(**env) == ''


def test_mariadb_verified_and_renewed(controller):
    folder = controller.folder / 'mariadb'
    folder.mkdir()
    controller.set_up(('mysql', 'mariadb'))
    found = settings_of(controller.run('mariadb_tls'))
    options = [f'--{name}={value}' for name, value in found.items()]
    assert '--require-secure-transport=ON' in options
    bind = f'--bind-address=127.0.0.1,{ADDRESS},{OTHER}'
    with mariadb_server.run(folder, bind, *options, user='mysql') as server:
        server.execute(
            f"DROP USER {mariadb_server.USER}@'127.0.0.1'",
            "CREATE USER manila_controller@'%%'",
        )
        (controller.folder / '.my.cnf').write_text(
            f'[client]\nsocket = {folder}/socket\n'
        )
        check_database(controller, server.port)
        check_renewal(
            *(controller, 'mysql', 'mariadb', server.port, '-starttls', 'mysql'),
            HOME=str(controller.folder),
        )


def test_postgresql_verified_and_renewed(controller):
    controller.variables += 'DATABASE=postgresql\n'
    controller.set_up(('postgres', 'postgresql'))
    found = settings_of(controller.run('postgresql_tls'))
    settings = ''.join(f' -c {name}={value}' for name, value in found.items())
    settings += f" -c listen_addresses='127.0.0.1,{ADDRESS},{OTHER}'"
    with postgresql_server.run('--auth=trust', settings=settings) as server:
        hba = pathlib.Path(server.folder, 'data/pg_hba.conf')
        line = controller.run('hba_line hostssl manila_controller')
        assert line.startswith('hostssl manila manila_controller ')
        hba.write_text(f'local all all trust\n{line}'.replace('scram-sha-256', 'trust'))
        ask = f'psql --quiet -U postgres -h {server.folder} -p {server.port} postgres'
        controller.add_reload(
            'postgresql', f'{ask} -tAc "SELECT pg_reload_conf()" > /dev/null'
        )
        for statement in (
            'CREATE ROLE manila_controller LOGIN',
            'CREATE DATABASE manila',
        ):
            subprocess.run([*ask.split(), '-c', statement], check=True)
        deploy_scripts.run(controller.folder / 'reload/postgresql')
        check_database(controller, server.port)
        check_renewal(
            *(controller, 'postgres', 'postgresql', server.port),
            *('-starttls', 'postgres'),
        )


def check_database(controller, port):
    """Services verify the server, and it accepts nothing but TLS."""
    conf = controller.folder / 'manila_lite.conf'
    conf.write_text(controller.run('service_conf controller'))
    url = sa.make_url(option(conf, 'connection', 'database'))
    url = url.set(port=port, database='' if 'mysql' in url.drivername else 'manila')
    # No password: the servers of tests want none.
    url = url._replace(password=None)
    assert select(url) == 1
    check_inventory(controller, url)
    with pytest.raises(sa.exc.OperationalError, match='SSL|TLS|certificate'):
        select(url.set(host=OTHER))
    (controller.folder / 'other').mkdir()
    certificates.make(controller.folder / 'other', ADDRESS)
    other = str(controller.folder / 'other/ca.pem')
    name = 'ssl_ca' if 'ssl_ca' in url.query else 'sslrootcert'
    with pytest.raises(sa.exc.OperationalError, match='SSL|TLS|certificate'):
        select(url.update_query_dict({name: other}))
    plain = url.set(query={})
    if 'postgresql' in url.drivername:
        plain = url.set(query={'sslmode': 'disable'})
    else:
        plain = plain.set(drivername='mysql+pymysql', query={'ssl_disabled': 'true'})
    with pytest.raises(sa.exc.OperationalError):
        select(plain)


def check_inventory(controller, url):
    """It shows when the certificate ends that the server presents."""
    file = controller.folder / 'inventory.conf'
    text = url.render_as_string(hide_password=False)
    file.write_text(f'[database]\nconnection = {text}\n')
    database = Database(engines.with_driver(text))
    conf = start.configure('test', config_files=[str(file)], conf=cfg.ConfigOpts())
    (found,) = ends.list_ends(conf, database)
    database.dispose()
    presented = x509.load_pem_x509_certificate(
        (controller.tls / 'server.pem').read_bytes()
    )
    assert found == {
        'server': 'database',
        'address': f'{ADDRESS}:{url.port}',
        'ends': f'{presented.not_valid_after_utc:%Y-%m-%d %H:%M:%S}',
        'days': 89,
        'authority_ends': found['authority_ends'],
        'problem': None,
    }


def select(url):
    engine = sa.create_engine(
        engines.with_driver(url.render_as_string(hide_password=False)),
        poolclass=sa.pool.NullPool,
    )
    with engine.connect() as connection:
        return connection.exec_driver_sql('SELECT 1').scalar()


@contextlib.contextmanager
def running(*command, **options):
    with subprocess.Popen([*map(str, command)], **options) as process:
        try:
            yield process
        finally:
            process.terminate()


def answers(port, address=ADDRESS):
    with contextlib.suppress(OSError):
        socket.create_connection((address, port), 1).close()
        return True
    return False


@contextlib.contextmanager
def redis_of(controller, port, plain):
    """Run Redis with what deploy writes, but for the ports."""
    text = controller.run('redis_conf').replace('tls-port 6380', f'tls-port {port}')
    conf = controller.folder / 'redis.conf'
    conf.write_text(f'port {plain}\n{text}save ""\n')
    with running(
        tool('redis-server'),
        conf,
        stdout=subprocess.DEVNULL,
        user='redis',
        group='redis',
        extra_groups=[],
        cwd=controller.folder,
    ):
        wait_until(lambda: answers(port), 'Redis listens')
        yield controller.run('printf %s "$LOCKS_URL"').replace(':6380', f':{port}')


def sign_in(url):
    coordinator = coordination.get_coordinator(url, b'test')
    coordinator.start()
    coordinator.stop()


def test_redis_verified_and_renewed(controller):
    port, plain = free_port(), free_port()
    controller.set_up(('redis', 'redis-server'), REDIS_PORT=port)
    with redis_of(controller, port, plain) as url:
        assert not answers(plain)
        sign_in(url)
        # It listens on loopback, for which the certificate is not. With its
        # default, tooz's client tries that again for more than a minute.
        client = redis.Redis(
            host='127.0.0.1',
            port=port,
            ssl=True,
            ssl_ca_certs=str(controller.tls / 'ca.pem'),
            retry=None,
        )
        with pytest.raises(redis.ConnectionError, match='certificate verify failed'):
            client.ping()
        check_renewal(controller, 'redis', 'redis-server', port)


def test_nodes_of_older_releases_go_on_while_tls_is_optional(controller):
    controller.variables += 'INTERNAL_TLS=no\n'
    older = controller.run('printf %s "$LOCKS_URL"')
    controller.variables += 'INTERNAL_TLS=optional\n'
    port, plain = free_port(), free_port()
    controller.set_up(('redis', 'redis-server'), REDIS_PORT=port)
    with redis_of(controller, port, plain) as url:
        sign_in(url)
        sign_in(older.replace(':6379', f':{plain}'))
    # The same of servers that take longer to start.
    assert 'require' not in controller.run('mariadb_tls')
    assert f'listeners.tcp.node = {ADDRESS}:5672' in controller.run('rabbitmq_conf')
    hba = controller.folder / 'pg_hba.conf'
    hba.touch()
    controller.run(f'put_hba_line {hba} manila_node')
    assert hba.read_text().startswith('host manila manila_node ')


def test_rabbitmq_verified_and_renewed(controller):
    port, plain, distribution = free_port(), free_port(), free_port()
    if shutil.which('rabbitmq-server', path=deploy_scripts.PATH) is None:
        requirements.missing('RabbitMQ is not installed')
    controller.set_up(('rabbitmq', 'rabbitmq-server'))
    folder = controller.folder / 'rabbitmq'
    folder.mkdir()
    text = controller.run('rabbitmq_conf').replace(':5671', f':{port}')
    assert 'listeners.tcp = none\n' in text
    (folder / 'rabbitmq.conf').write_text(text)
    name = f'manila-lite-{os.getpid()}@localhost'
    env = {
        'HOME': str(folder),
        'PATH': f'/usr/lib/rabbitmq/bin:{deploy_scripts.PATH}',
        'RABBITMQ_NODENAME': name,
        'RABBITMQ_CONF_ENV_FILE': '/nowhere',
        'RABBITMQ_CONFIG_FILE': str(folder / 'rabbitmq.conf'),
        'RABBITMQ_CONFIG_FILES': str(folder / 'nowhere'),
        'RABBITMQ_ADVANCED_CONFIG_FILE': str(folder / 'nowhere.config'),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(folder / 'plugins'),
        'RABBITMQ_MNESIA_BASE': str(folder / 'data'),
        'RABBITMQ_LOG_BASE': str(folder / 'log'),
        'RABBITMQ_NODE_PORT': str(plain),
        'RABBITMQ_DIST_PORT': str(distribution),
        'ERL_EPMD_ADDRESS': '127.0.0.1',
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '-setcookie test',
    }
    # As the user of the server, who reads its certificate.
    shutil.chown(folder, 'rabbitmq', 'rabbitmq')
    as_user = [tool('runuser'), '-u', 'rabbitmq', '--']
    ctl = controller.folder / 'bin/rabbitmqctl'
    exports = ' '.join(f"{key}='{value}'" for key, value in env.items())
    ctl.write_text(
        f'#!/bin/sh\ncd /\nexec runuser -u rabbitmq -- env {exports} '
        '/usr/lib/rabbitmq/bin/rabbitmqctl --erlang-cookie test "$@"\n'
    )
    ctl.chmod(0o755)
    with running(
        *as_user,
        '/usr/lib/rabbitmq/bin/rabbitmq-server',
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd='/',
        start_new_session=True,
    ) as process:
        try:
            wait_until(lambda: answers(port), 'RabbitMQ listens', timeout=120)
            assert not answers(plain)
            context = controller.trusting()
            with socket.create_connection((ADDRESS, port), 10) as link:
                context.wrap_socket(link, server_hostname=ADDRESS).close()
            with (
                socket.create_connection((ADDRESS, port), 10) as link,
                pytest.raises(ssl.SSLCertVerificationError),
            ):
                context.wrap_socket(link, server_hostname=OTHER)
            check_renewal(controller, 'rabbitmq', 'rabbitmq-server', port)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.server.forwarded.append(self.headers['X-Forwarded-Proto'])
        self.send_response(202)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving(port):
    """Yield an API of one controller, which listens without TLS."""
    with http.server.ThreadingHTTPServer(('127.0.0.1', port), Api) as server:
        server.forwarded = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Proxies:
    """HAProxy of two controllers; the API of each has a port at loopback."""

    def __init__(self, first):
        self.first = first
        self.second = Controller(first.folder / 'second')
        self.port, self.inner = free_port(), free_port()
        self.apis = [self.inner, free_port()]
        first.set_up(('haproxy', 'haproxy'))
        self.second.variables = VARIABLES.replace(f'={ADDRESS}', f'={OTHER}')
        shutil.copy(first.folder / 'secrets', self.second.folder)
        self.second.set_up(('haproxy', 'haproxy'))

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            for node, api in zip((self.first, self.second), self.apis, strict=True):
                address = re.search('NODE_IP=(.*)', node.variables)[1]
                text = node.run(
                    f'API_PORT={self.port} API_LOCAL_PORT={self.inner} '
                    f'proxy_conf {address}'
                )
                # Checks find nothing out as long as the test takes.
                text = re.sub('inter .* fall', 'inter 600s fall', text)
                own = f'127.0.0.1:{self.inner}'
                text = text.replace(own, f'127.0.0.1:{api}')
                file = node.folder / 'haproxy.cfg'
                file.write_text(text)
                process = stack.enter_context(
                    running(tool('haproxy'), '-W', '-db', '-f', file)
                )
                node.add_reload('haproxy', f'kill -USR2 {process.pid}')
            for address in (ADDRESS, OTHER):
                for port in (self.port, self.inner):
                    wait_until(
                        lambda address=address, port=port: answers(port, address),
                        'HAProxy listens',
                    )
            yield


@pytest.fixture
def proxies(controller):
    tool('haproxy')
    return Proxies(controller)


@pytest.mark.parametrize('alive', [0, 1])
def test_requests_go_to_the_controller_whose_api_is_up(proxies, alive):
    """Once each, though no check has found out which one that is."""
    with serving(proxies.apis[alive]) as api, proxies.running():
        for _ in range(6):
            answer = requests.post(
                f'http://{ADDRESS}:{proxies.port}/v2/shares', data='{}', timeout=30
            )
            assert answer.status_code == 202
        assert api.forwarded == ['http'] * 6


def test_clients_get_503_while_the_api_of_no_controller_is_up(proxies):
    with proxies.running():
        for _ in range(4):
            answer = requests.post(
                f'http://{ADDRESS}:{proxies.port}/v2/shares', data='{}', timeout=30
            )
            assert answer.status_code == 503
            assert answer.json()['serviceUnavailable']['code'] == 503
            assert answer.headers['Retry-After'] == '5'


def test_apis_of_controllers_are_for_proxies_with_a_certificate(proxies):
    url = f'https://{OTHER}:{proxies.inner}/'
    trusted = str(proxies.first.tls / 'ca.pem')
    with serving(proxies.apis[1]), proxies.running():
        with pytest.raises(requests.ConnectionError):
            requests.get(url, verify=trusted, timeout=30)
        shown = str(proxies.first.tls / 'haproxy.pem')
        answer = requests.get(url, verify=trusted, cert=shown, timeout=30)
        assert answer.status_code == 200


def test_haproxy_takes_a_renewed_certificate(proxies):
    first = proxies.first
    with proxies.running():
        before = first.serial('haproxy')
        assert served(proxies.inner) == before
        first.make_due()
        assert 'let haproxy read its certificate again' in first.renew()
        wait_until(
            lambda: served(proxies.inner) == first.serial('haproxy') != before,
            'HAProxy serves the new certificate',
        )


def test_certificate_of_the_operator_is_taken_if_servers_can_use_it(controller):
    given = controller.folder / 'given'
    given.mkdir()
    certificates.make(given, ADDRESS)
    pem = given / 'server.pem'
    controller.variables += f"""
INTERNAL_CERTIFICATE={pem}
INTERNAL_CACERT={given}/ca.pem
"""
    controller.set_up()
    assert 'CA_KEY' not in (controller.folder / 'secrets').read_text()
    serial = controller.serial('redis')
    path = (controller.folder / 'units/manila-lite-certificates.path').read_text()
    assert f'PathChanged={pem}\n' in path
    good = pem.read_text()
    certificates.make(given, OTHER)
    key = re.search('-----BEGIN PRIVATE.*', pem.read_text(), re.S)[0]
    for text, fault in (
        (good.replace(good[good.index('-----BEGIN PRIVATE') :], ''), 'no private key'),
        (good[: good.index('-----BEGIN PRIVATE')] + key, 'of another certificate'),
        (pem.read_text(), f'is not accepted for {ADDRESS}'),
        ('', 'contains no certificate'),
    ):
        pem.write_text(text)
        with pytest.raises(AssertionError, match=fault):
            controller.renew()
        assert controller.serial('redis') == serial


def test_a_server_that_does_not_take_a_certificate_is_asked_again(controller):
    controller.set_up(('postgres', 'postgresql'))
    controller.variables += 'DATABASE=postgresql\n'
    controller.set_up(('postgres', 'postgresql'))
    controller.make_due()
    controller.add_reload('postgresql', 'exit 1')
    with pytest.raises(AssertionError, match='not read their certificate.*postgresql'):
        controller.renew()
    controller.add_reload('postgresql', 'exit 0')
    assert controller.renew() == 'let postgresql read its certificate again\n'
    assert controller.renew() == ''


def test_nodes_get_the_ca_and_no_key(controller):
    controller.run('put_node_secrets; put_ca')
    ca = (controller.tls / 'ca.pem').read_text()
    x509.load_pem_x509_certificate(ca.encode())
    (controller.folder / 'secrets').write_text(
        (controller.folder / 'node-secrets').read_text()
    )
    assert 'CA_KEY' not in (controller.folder / 'secrets').read_text()
    shutil.rmtree(controller.tls)
    controller.variables += f'NODE_IP={OTHER}\n'
    controller.run('put_ca')
    assert (controller.tls / 'ca.pem').read_text() == ca
