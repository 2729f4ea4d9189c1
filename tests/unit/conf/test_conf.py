"""Valid and invalid configuration files, and the reported errors."""

import socket
import subprocess
import sys

from oslo_config import cfg
import pytest

from manila_lite import conf
from manila_lite.conf import core

INCUMBENT = """
[DEFAULT]
debug = True
transport_url = rabbit://user:secret@broker:5672/
api_paste_config = /etc/manila/api-paste.ini
rootwrap_config = /etc/manila/rootwrap.conf
share_manager = manila.share.manager.ShareManager
scheduler_driver = manila.scheduler.drivers.filter.FilterScheduler
state_path = /var/lib/manila
my_ip = 10.0.0.5
host = storage-1
auth_strategy = keystone
storage_availability_zone = room-a
default_share_type = plain
enabled_share_backends = london,paris
enabled_share_protocols = NFS
osapi_share_listen = 0.0.0.0
osapi_share_listen_port = 8787
osapi_share_workers = 4
report_interval = 5
periodic_interval = 30
service_down_time = 25
scheduler_default_filters = CapacityFilter,CapabilitiesFilter
capacity_weight_multiplier = -1.0
quota_shares = 7
soft_deleted_share_retention_time = 60
message_ttl = 100
replica_state_update_interval = 20
no_such_option_anywhere = 1

[database]
connection = mysql+pymysql://user:secret@db/manila

[quota]
gigabytes = -1
driver = manila.quota.DbQuotaDriver

[coordination]
backend_url = redis://locks:6379

[oslo_concurrency]
lock_path = /var/lib/manila/lock

[london]
share_driver = manila.share.drivers.lvm.LVMShareDriver
share_backend_name = LONDON
driver_handles_share_servers = False
lvm_share_volume_group = lvm-shares
reserved_share_percentage = 10
max_over_subscription_ratio = 1.5

[paris]
share_driver = dummy
driver_handles_share_servers = True
backend_availability_zone = room-b
filter_function = share.size < 100
dummy_driver_driver_methods_delays = create_share:0.5
dummy_driver_fail_methods = create_share:2,delete_share:always
dummy_driver_pools = gold,silver
"""

TWO = '[DEFAULT]\nenabled_share_backends = a,b\n'
GOOD = 'share_driver = dummy\ndriver_handles_share_servers = false\n'


@pytest.fixture
def read(tmp_path):
    """`read(text)`: the configuration of a file with this text."""

    def read(text):
        file = tmp_path / 'manila.conf'
        file.write_text(text)
        return conf.new(files=[str(file)])

    return read


def test_a_file_of_manila_can_be_read(read):
    options = read(INCUMBENT)
    assert conf.backends(options) == ['london', 'paris']
    conf.check(options)
    assert options.host == 'storage-1'
    assert options.my_ip == '10.0.0.5'
    assert options.auth_strategy == 'keystone'
    assert options.storage_availability_zone == 'room-a'
    assert options.default_share_type == 'plain'
    assert options.enabled_share_protocols == ['NFS']
    assert options.osapi_share_listen_port == 8787
    assert (options.report_interval, options.service_down_time) == (5, 25)
    assert options.scheduler_default_filters == ['CapacityFilter', 'CapabilitiesFilter']
    assert options.capacity_weight_multiplier == -1.0
    assert options.quota.gigabytes == -1
    assert options.coordination.backend_url == 'redis://locks:6379'
    assert options.message_ttl == 100


def test_sections_of_back_ends_are_read(read):
    options = read(INCUMBENT)
    conf.backends(options)
    assert options.london.share_backend_name == 'LONDON'
    assert options.london.driver_handles_share_servers is False
    assert options.london.reserved_share_percentage == 10
    assert options.london.max_over_subscription_ratio == 1.5
    assert options.paris.share_driver == 'dummy'
    assert options.paris.driver_handles_share_servers is True
    assert options.paris.backend_availability_zone == 'room-b'
    assert options.paris.filter_function == 'share.size < 100'
    assert options.paris.dummy_driver_pools == ['gold', 'silver']
    assert options.paris.dummy_driver_fail_methods == {
        'create_share': '2',
        'delete_share': 'always',
    }
    assert options.paris.dummy_driver_driver_methods_delays == {'create_share': '0.5'}


def test_a_quota_under_its_old_name_is_honoured(read):
    assert read('[DEFAULT]\nquota_shares = 7\n').quota.shares == 7


def test_a_quota_under_its_new_name_wins_over_the_old(read):
    options = read('[DEFAULT]\nquota_shares = 7\n[quota]\nshares = 8\n')
    assert options.quota.shares == 8


def test_paths_follow_the_state_path(read):
    options = read(
        '[DEFAULT]\nstate_path = /srv/state\n'
        f'enabled_share_backends = a,dummy\n[a]\n{GOOD}[dummy]\n{GOOD}'
    )
    conf.backends(options)
    assert options.a.local_root == '/srv/state/local'
    assert options.a.dummy_driver_state_path == '/srv/state/dummy-a'
    assert options.dummy.dummy_driver_state_path == '/srv/state/dummy'
    assert options.coordination.backend_url == 'file:///srv/state'
    assert options.http_basic.users_file == '/srv/state/users'


def test_back_ends_may_be_read_repeatedly(read):
    options = read(f'{TWO}[a]\n{GOOD}[b]\n{GOOD}')
    assert conf.backends(options) == conf.backends(options) == ['a', 'b']


@pytest.mark.parametrize(
    'text, message',
    [
        ('', 'names no back end'),
        ('[DEFAULT]\nenabled_share_backends = a,a\n', 'twice: a, a'),
        (f'{TWO}[a]\n{GOOD}', r'"b".*share_driver is missing.*\[b\]'),
        (
            f'{TWO}[a]\n{GOOD}[b]\nshare_driver = local\n',
            r'"b".*driver_handles_share_servers is missing',
        ),
        (f'{TWO}[a]\n{GOOD}[b]\nshare_driver =\n', 'share_driver is missing'),
        ('[DEFAULT]\nenabled_share_backends = a@b\n', 'a@b'),
    ],
)
def test_back_ends_that_cannot_run_are_reported(read, text, message):
    with pytest.raises(cfg.Error, match=message):
        conf.backends(read(text))


@pytest.mark.parametrize(
    'text, message',
    [
        ('[DEFAULT]\nreport_interval = often\n', 'report_interval'),
        ('[DEFAULT]\nauth_strategy = trust\n', 'auth_strategy'),
        ('[DEFAULT]\ncleanup_interval = 1\n', 'cleanup_interval'),
        ('[work]\nlease = 0\n', 'lease'),
        ('[DEFAULT]\nosapi_share_use_ssl = true\n', 'proxy'),
    ],
)
def test_an_invalid_option_is_reported_by_name(read, text, message):
    with pytest.raises(cfg.Error, match=message):
        conf.check(read(text))


def test_an_invalid_option_of_a_back_end_is_reported_by_name(read):
    options = read(
        '[DEFAULT]\nenabled_share_backends = a\n[a]\n'
        f'{GOOD}max_over_subscription_ratio = 0.5\n'
    )
    with pytest.raises(cfg.Error, match='"a".*max_over_subscription_ratio'):
        conf.backends(options)


def test_all_bad_back_ends_are_reported_at_once(read):
    options = read(
        '[DEFAULT]\nenabled_share_backends = a,b,c,d\n'
        f'[a]\n{GOOD}reserved_share_percentage = some\n[c]\n{GOOD}'
    )
    with pytest.raises(cfg.Error) as error:
        conf.backends(options)
    assert '"a"' in str(error.value)
    assert 'reserved_share_percentage' in str(error.value)
    assert '"b"' in str(error.value)
    assert '"c"' not in str(error.value)
    assert '"d"' in str(error.value)


@pytest.mark.parametrize(
    'name, legal',
    [
        ('node-1', 'node-1'),
        ('123456789012', 'host-123456789012'),
        ('my_node', 'host-my-node'),
    ],
)
def test_any_machine_name_makes_a_legal_host(monkeypatch, name, legal):
    monkeypatch.setattr(socket, 'gethostname', lambda: name)
    assert core._hostname() == legal


def test_every_option_has_a_help_text():
    assert [
        opt.name
        for _, opts in conf.list_opts()
        for opt in opts
        if len(opt.help or '') < 40 or not opt.help.endswith('.')
    ] == []


def test_importing_the_options_is_light():
    code = (
        'import sys, manila_lite.conf; '
        'print([m for m in sys.modules if m in {"sqlalchemy", "tooz", '
        '"oslo_db", "oslo_messaging", "oslo_policy", "eventlet", '
        '"keystonemiddleware", "manila_lite.exception"}])'
    )
    result = subprocess.run(
        [sys.executable, '-c', code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == '[]'


def test_a_value_set_in_one_configuration_is_not_in_another():
    first = conf.new()
    first.set_override('lock_timeout', 0.25, 'coordination')
    assert conf.new().coordination.lock_timeout == 10
    assert first.coordination.lock_timeout == 0.25
