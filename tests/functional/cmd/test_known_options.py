"""What the files set in vain: misspelt, ignored and misplaced options."""

import pathlib
import re

import pytest

from manila_lite.cmd import known_options, start
from manila_lite.cmd.manage import main
from tests.support import command_line

ROOT = pathlib.Path(known_options.__file__).parents[2]

BACKEND = 'share_driver = local\ndriver_handles_share_servers = false\n'
ADOPTED = f"""
[DEFAULT]
rootwrap_config = /etc/manila/rootwrap.conf
api_paste_config = /etc/manila/api-paste.ini
quota_driver = manila.quota.DbQuotaDriver
enabled_share_backends = one
lvm_share_volume_group = shares
share_backend_name = outside
[neutron]
url = http://127.0.0.1:9696
[database]
max_retries = 3
db_max_retries = 5
[one]
{BACKEND}lvm_share_export_root = /srv
"""
KEYSTONE = """
[DEFAULT]
quota_shares = 5
log-dir = {folder}
[keystone_authtoken]
www_authenticate_uri = https://identity:5000
auth_url = https://identity:5000
auth_type = password
project_domain_name = Default
username = manila
application_credential_id = 5
memcached_servers = cache:11211
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
[cors]
allowed_origin = https://here
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_policy]
policy_file = policy.yaml
[oslo_reports]
log_dir = {folder}
"""


@pytest.fixture
def check(tmp_path):
    """`check(text)`: what is found in a file with this text."""

    def check(text, **kwargs):
        file = tmp_path / 'manila.conf'
        file.write_text(text)
        result = []

        def configure(argv):
            conf = start.configure('test', config_files=[str(file)])
            result.append(known_options.find(conf, **kwargs))

        ended = command_line.run(configure, [])
        assert ended.code == 0, ended.err
        return result[0]

    return check


def words(found):
    """Return what is unknown, without the path of the file."""
    return [text.partition(': ')[2] for text in found.unknown]


@pytest.mark.parametrize(
    'text, said',
    [
        (
            '[DEFAULT]\nreport_intervall = 5\n',
            '[DEFAULT] report_intervall is unknown; did you mean report_interval?',
        ),
        (
            '[databse]\nconnection = x\nmax_retries = 1\n',
            'section [databse] is unknown; did you mean [database]?',
        ),
        (
            '[DEFAULT]\nsweep_interval = 1\n',
            '[DEFAULT] sweep_interval is unknown; it belongs to [work]',
        ),
        (
            '[keystone_authtoken]\nmemcached_server = x\n',
            '[keystone_authtoken] memcached_server is unknown; '
            'did you mean memcached_servers?',
        ),
        (
            f'[DEFAULT]\nenabled_share_backends = a\n[a]\n{BACKEND}local_rot = /srv\n',
            '[a] local_rot is unknown; did you mean local_root?',
        ),
        (
            f'[of_another_node]\n{BACKEND}colour = red\n',
            '[of_another_node] colour is unknown',
        ),
    ],
)
def test_misspelt_names_are_unknown(check, text, said):
    assert words(check(text)) == [said]


def test_options_of_libraries_are_known(check, tmp_path):
    found = check(KEYSTONE.format(folder=tmp_path))
    assert found == ([], [])


def test_options_of_a_network_section_are_known(check):
    assert check(
        f'[DEFAULT]\nenabled_share_backends = a\n[a]\n{BACKEND}'
        'network_config_group = wires\n'
        '[wires]\nstandalone_network_plugin_gateway = 10.0.0.1\n'
    ) == ([], [])


def test_options_of_an_adopted_file_are_ignored_for_a_reason(check):
    found = check(ADOPTED)
    assert found.unknown == []
    reasons = {
        f'[{setting.section}] {setting.name}': why for setting, why in found.ignored
    }
    assert set(reasons) == {
        '[DEFAULT] rootwrap_config',
        '[DEFAULT] api_paste_config',
        '[DEFAULT] quota_driver',
        '[DEFAULT] lvm_share_volume_group',
        '[DEFAULT] share_backend_name',
        '[neutron] url',
        '[database] db_max_retries',
        '[one] lvm_share_export_root',
    }
    assert all(reasons.values())


@pytest.mark.parametrize('name', ['manila_lite', 'single-node'])
def test_example_names_no_unknown_option(check, tmp_path, name):
    example = ROOT / f'etc/manila_lite/{name}.conf.example'
    text = re.sub('<.*?>', '192.0.2.10', example.read_text())
    text = text.replace('/var/log/manila', str(tmp_path))
    assert check(text) == ([], [])


def test_upgrade_check_reports_and_fails(tmp_path):
    file = tmp_path / 'manila.conf'
    file.write_text(f'{ADOPTED}[wrok]\nlease = 5\n')
    where = ('--config-file', str(file), '--state-dir', str(tmp_path))
    command_line.run(main, ['db', 'sync', *where])
    ended = command_line.run(main, ['status', 'upgrade-check', *where])
    assert ended.code == 2, ended.err
    printed = ' '.join(ended.out.replace('|', ' ').split())
    assert 'section [wrok] is unknown; did you mean [work]?' in printed
    assert '[neutron] url: networks come from' in printed
    file.write_text(ADOPTED)
    ended = command_line.run(main, ['status', 'upgrade-check', *where])
    assert ended.code == 1, ended.out


def test_all_bad_drivers_are_reported_at_once(tmp_path):
    file = tmp_path / 'manila.conf'
    file.write_text(
        '[DEFAULT]\nenabled_share_backends = a,b\n'
        f'[a]\n{BACKEND.replace("local", "lokal")}'
        f'[b]\n{BACKEND.replace("local", "not.here.Driver")}'
    )
    ended = command_line.run(
        main, ['status', 'upgrade-check', '--config-file', str(file)]
    )
    printed = ' '.join(ended.out.replace('|', ' ').split())
    assert 'back end "a"' in printed
    assert 'back end "b"' in printed
