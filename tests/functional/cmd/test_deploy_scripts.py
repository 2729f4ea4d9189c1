"""The scripts of deploy: their style, and the files that they write."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import requests

from manila_lite import conf as options
from tests.support import deploy_scripts, sampling
from tests.support.deploy_scripts import DEPLOY, PREPARE, ROOT, run, tool
from tests.support.processes import free_port, wait_until

SCRIPTS = sorted(
    path
    for folder in ('deploy', 'deploy/lib', 'devstack', 'tools')
    for path in (ROOT / folder).iterdir()
    if path.is_file()
    and path.suffix not in ('.py', '.rst')
    and path.name != 'local.conf'
)
VARIABLES = """
NODE_IP=192.0.2.11
NODE_NAME=node
CONTROLLERS='192.0.2.11 192.0.2.12'
INTERNAL_TLS=no
BACKENDS='fast large'
BACKEND_large='share_driver = dummy
driver_handles_share_servers = false'
"""


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs lines with the functions of deploy."""
    return lambda lines: deploy_scripts.shell(lines, VARIABLES, tmp_path)


@sampling.enumeration
def test_shellcheck_has_no_complaint():
    run(
        tool('shellcheck'),
        '--external-sources',
        '--source-path',
        ROOT,
        *sampling.sample(SCRIPTS, len(SCRIPTS) // 5),
    )


def test_bashate_has_no_complaint():
    # DevStack wants a file of this name.
    run(tool('bashate'), *(set(SCRIPTS) - {ROOT / 'devstack/settings'}))


def test_what_a_command_prints_is_read_to_its_end(shell):
    found = shell("""
        prints '^1$' seq 100000 && echo begins
        ! prints '^x$' seq 100000 && echo ends
        (prints '^1$' false 2>&1) || echo "$?"
    """)
    assert found.splitlines()[:2] == ['begins', 'ends']
    assert found.splitlines()[2:] == ['bash: this command has failed: false', '1']


def test_a_file_is_written_when_it_differs(shell, tmp_path):
    file = tmp_path / 'file'
    lines = f"""
owner=$(id -un):$(id -gn)
put() {{
    put_file "$owner" "$1" {file} <<< "$2"
}}
put 600 one; put 600 one; put 640 one; put 640 two
put_line {file} three; put_line {file} three
delete_line {file} three; delete_line {file} three
delete_file {file}; delete_file {file}
report_changes
"""
    assert shell(lines).splitlines() == [
        *[f'wrote {file}'] * 3,
        f'added a line to {file}',
        f'removed a line from {file}',
        f'removed {file}',
        'Changes: 6.',
    ]


class Planted:
    """A directory of another user, and what its links are to destroy."""

    def __init__(self, folder):
        folder.chmod(0o755)
        self.folder = folder / 'state'
        self.folder.mkdir(mode=0o750)
        self.file = folder / 'precious'
        self.file.write_text('precious\n')
        self.file.chmod(0o600)
        self.directory = folder / 'directory'
        self.directory.mkdir(mode=0o700)
        shutil.chown(self.folder, 'nobody', 'nogroup')

    def link(self, name, target):
        (self.folder / name).symlink_to(target)
        os.lchown(self.folder / name, *os.stat(self.folder)[4:6])

    def check_untouched(self):
        assert self.file.read_text() == 'precious\n'
        assert os.stat(self.file)[4:6] == (0, 0)
        assert self.file.stat().st_mode & 0o777 == 0o600
        assert os.stat(self.directory)[4:6] == (0, 0)
        assert not list(self.directory.iterdir())


@pytest.fixture
def planted():
    deploy_scripts.require_root()
    # Where other users can go, unlike in the directories of pytest.
    with tempfile.TemporaryDirectory() as folder:
        found = Planted(pathlib.Path(folder))
        yield found
        found.check_untouched()


@pytest.mark.parametrize('name', ['key', 'key.deploy-new', 'key.new'])
def test_root_writes_through_no_link_of_the_service(shell, planted, name):
    planted.link(name, planted.file)
    lines = f'put_file nobody:nogroup 600 {planted.folder}/key <<< "$TOKEN_KEY"'
    assert shell(lines) == f'wrote {planted.folder}/key\n'
    key = planted.folder / 'key'
    assert (key.is_symlink(), key.read_text()) == (False, 'f\n')
    assert os.stat(key)[4:6] == os.stat(planted.folder)[4:6]
    assert shell(lines) == ''


@pytest.mark.parametrize(
    'lines, target',
    [
        ('put_line {0}/link line', 'file'),
        ('delete_line {0}/link precious', 'file'),
        ('put_directory nobody:nogroup 750 {0}/link', 'directory'),
        ('put_directory nobody:nogroup 750 {0}/link/new', 'directory'),
        ('put_file nobody:nogroup 600 {0}/link/key <<< text', 'directory'),
        ('put_file root:root 600 {0}/link/key <<< text', 'directory'),
    ],
)
def test_root_changes_nothing_behind_a_link_of_the_service(
    shell, planted, lines, target
):
    planted.link('link', getattr(planted, target))
    ended = subprocess.run(
        ['bash', '-c', PREPARE + lines.format(planted.folder)],
        capture_output=True,
        text=True,
        env={'PATH': os.environ['PATH'], 'DEPLOY': str(DEPLOY)},
        check=False,
    )
    assert re.search('denied|not permitted', ended.stderr), ended


def test_root_writes_only_where_others_cannot_plant_links(shell, planted):
    common = planted.directory.with_name('common')
    common.mkdir()
    common.chmod(0o777)
    with pytest.raises(AssertionError, match='every user can change'):
        shell(f'put_file root:root 600 {common}/key <<< text')
    assert not list(common.iterdir())


def test_the_directory_of_the_service_has_no_file_of_root(shell, tmp_path):
    conf = tmp_path / 'manila_lite.conf'
    conf.write_text(shell('service_conf controller'))
    found = options.new(files=[str(conf)])
    assert found.http_basic.token_key_file == '/etc/manila_lite/token_key'


def test_purge_keeps_backups(shell, tmp_path):
    state = tmp_path / 'state'
    (state / 'lock').mkdir(parents=True)
    (state / 'token_key').touch()
    lines = f'STATE={state}; purge_state'
    (state / 'backups').mkdir()
    (state / 'backups' / 'file').touch()
    assert shell(lines).splitlines() == [
        f'removed {state}/token_key',
        f'removed {state}/lock',
        f'Kept {state}: it has other files.',
    ]
    assert [path.name for path in state.iterdir()] == ['backups']
    (state / 'backups' / 'file').unlink()
    (state / 'backups').rmdir()
    assert shell(lines).splitlines() == [f'removed {state}']
    assert not state.exists()


@pytest.mark.parametrize(
    'roles, backends', [('controller', []), ('share', ['fast', 'large'])]
)
def test_services_understand_their_configuration(shell, tmp_path, roles, backends):
    file = tmp_path / 'manila_lite.conf'
    file.write_text(shell(f'service_conf {roles}'))
    conf = options.new(files=[str(file)])
    assert conf.host == 'node'
    assert conf.osapi_share_listen == '192.0.2.11'
    url = 'mysql://manila:a@192.0.2.11/manila'
    assert f'connection = {url}' in file.read_text()
    assert conf.coordination.backend_url == 'redis://:c@192.0.2.11:6379'
    assert (conf.enabled_share_backends or []) == backends
    if backends:
        assert options.backends(conf) == backends
        assert conf.fast.local_root == '/srv/shares/fast'
        assert conf.large.share_driver == 'dummy'


@pytest.mark.parametrize('drop_in', [False, True])
def test_secrets_are_hidden_from_share_services_but_those_of_btrfs(
    shell, tmp_path, drop_in
):
    """Where paths are hidden, the mounts of the machine are not seen."""
    units = ROOT / 'etc/manila_lite/systemd'
    if drop_in:
        shutil.copytree(
            units / 'manila-lite-share.service.d',
            tmp_path / 'manila-lite-share.service.d',
        )
    owner = 'put_file() { cat > "$3"; }'
    shell(f'{owner}; UNITS={tmp_path}; put_unit_files "{units}" manila-lite-share')
    text = (tmp_path / 'manila-lite-share.service').read_text()
    hidden = re.findall('^InaccessiblePaths=.*-/etc/manila_lite/secrets ', text, re.M)
    assert len(hidden) == (not drop_in)


def test_controllers_alone_get_the_password_for_keystone(shell, tmp_path):
    file = tmp_path / 'manila_lite.conf'
    lines = 'AUTH=keystone; use_identity; service_conf'
    file.write_text(shell(f'{lines} controller'))
    assert options.new(files=[str(file)]).auth_strategy == 'keystone'
    text = file.read_text()
    assert '\nauth_url = http://192.0.2.11:5001/v3\n' in text
    assert '\npassword = d\n' in text
    assert 'keystone_authtoken' not in shell(f'{lines} share')


@pytest.mark.parametrize(
    'url, used',
    [
        ('', 'http://192.0.2.11:5000/v3'),
        ('https://identity', 'https://identity/v3'),
        ('https://identity/v3/', 'https://identity/v3'),
    ],
)
def test_clients_and_the_api_use_the_keystone_that_is_named(shell, url, used):
    lines = f'AUTH=keystone KEYSTONE_AUTH_URL={url}; use_identity'
    assert shell(f'{lines}; echo "$KEYSTONE_AUTH_URL"').strip() == used
    assert shell(f'{lines}; echo "$OWN_KEYSTONE"').strip() == ('no' if url else 'yes')


def test_only_the_first_controller_shows_the_age_of_backups(shell):
    line = 'backup_directory = /var/backups/manila_lite\n'
    assert line in shell('plain_conf controller')
    for lines in (
        'plain_conf share',
        'NODE_IP=192.0.2.12; plain_conf controller',
        'BACKUP_DIRECTORY=; plain_conf controller',
    ):
        assert 'backup_directory' not in shell(lines)


def test_passwords_that_the_file_has_are_kept(shell, tmp_path):
    secrets = tmp_path / 'secrets'
    lines = f"""
SECRETS={secrets} NODE_IP=$FIRST_CONTROLLER
add_secret ADMIN_PASSWORD one; add_secret ADMIN_PASSWORD two
NODE_IP=192.0.2.99 add_secret TOKEN_KEY three
report_changes
"""
    secrets.touch()
    assert shell(lines).endswith('Changes: 1.\n')
    assert secrets.read_text() == 'ADMIN_PASSWORD=one\n'


@pytest.mark.parametrize('auth', ['http_basic', 'keystone'])
def test_haproxy_understands_its_configuration(shell, tmp_path, auth):
    file = tmp_path / 'haproxy.cfg'
    file.write_text(shell(f'AUTH={auth}; use_identity; proxy_conf 192.0.2.11'))
    assert 'server api-2 192.0.2.12:8785' in file.read_text()
    keystone = 'server keystone 192.0.2.11:5001' in file.read_text()
    assert keystone == (auth == 'keystone')
    run(tool('haproxy'), '-c', '-f', file)


def test_haproxy_is_not_given_what_it_cannot_read(shell):
    tool('haproxy')
    lines = 'check_proxy_conf "$(proxy_conf 192.0.2.11)"'
    assert shell(lines) == ''
    with pytest.raises(AssertionError, match='(?s)HAProxy refuses.*nowhere'):
        shell(f'TLS_CERTIFICATE=/nowhere.pem; {lines}')


def test_haproxy_answers_like_the_api_while_none_is_up(shell, tmp_path):
    port = free_port()
    file = tmp_path / 'haproxy.cfg'
    # No check has found out yet that nothing listens on the API's port.
    file.write_text(
        shell(
            f'API_PORT={port} API_LOCAL_PORT={free_port()} '
            'CONTROLLERS=127.0.0.1 proxy_conf 127.0.0.1'
        )
    )
    with subprocess.Popen([tool('haproxy'), '-db', '-f', file]) as proxy:
        try:
            (answer,) = wait_until(
                lambda: answers_of(f'http://127.0.0.1:{port}/v2/shares'),
                'HAProxy answers',
            )
        finally:
            proxy.kill()
    assert answer.status_code == 503
    assert int(answer.headers['Retry-After']) > 0
    assert answer.json()['serviceUnavailable']['code'] == 503


def answers_of(url):
    with contextlib.suppress(requests.ConnectionError):
        return [requests.get(url, timeout=30)]
    return []


def test_container_gets_the_sources_that_deploy_installs(shell):
    copied = re.findall(
        r'^COPY ((?!--).*) /', (ROOT / 'Containerfile').read_text(), re.M
    )
    wanted = shell('printf "%s\\n" "${SOURCES[@]}"').split()
    wanted += ['constraints.txt', 'deploy']  # the wheels are built from them
    assert sorted(' '.join(copied).split()) == sorted(wanted)
    ignored = (ROOT / '.containerignore').read_text().splitlines()
    assert {f'!{name}' for name in wanted} <= set(ignored)


def test_logrotate_understands_its_configuration():
    # Without the user of the service it would not go on.
    text = (ROOT / 'etc/manila_lite/logrotate.conf').read_text()
    ended = subprocess.run(
        [tool('logrotate'), '--debug', '/dev/stdin'],
        input=text.replace('su manila manila', 'su root root'),
        capture_output=True,
        text=True,
    )
    assert 'error' not in ended.stderr, ended.stderr
