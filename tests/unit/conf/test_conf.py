"""Files of operators, good and broken, and what is told about them."""

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
    """Makes a configuration of the text of a file."""

    def read(text):
        file = tmp_path / 'manila.conf'
        file.write_text(text)
        return conf.new(files=[str(file)])

    return read


def test_a_file_of_the_incumbent_is_read_as_it_is(read):
    found = read(INCUMBENT)
    assert conf.backends(found) == ['london', 'paris']
    conf.check(found)
    assert found.host == 'storage-1'
    assert found.my_ip == '10.0.0.5'
    assert found.auth_strategy == 'keystone'
    assert found.storage_availability_zone == 'room-a'
    assert found.default_share_type == 'plain'
    assert found.enabled_share_protocols == ['NFS']
    assert found.osapi_share_listen_port == 8787
    assert (found.report_interval, found.service_down_time) == (5, 25)
    assert found.scheduler_default_filters == [
        'CapacityFilter',
        'CapabilitiesFilter',
    ]
    assert found.capacity_weight_multiplier == -1.0
    assert found.quota.gigabytes == -1
    assert found.coordination.backend_url == 'redis://locks:6379'
    assert found.message_ttl == 100


def test_sections_of_back_ends_are_read(read):
    found = read(INCUMBENT)
    conf.backends(found)
    assert found.london.share_backend_name == 'LONDON'
    assert found.london.driver_handles_share_servers is False
    assert found.london.reserved_share_percentage == 10
    assert found.london.max_over_subscription_ratio == 1.5
    assert found.paris.share_driver == 'dummy'
    assert found.paris.driver_handles_share_servers is True
    assert found.paris.backend_availability_zone == 'room-b'
    assert found.paris.filter_function == 'share.size < 100'
    assert found.paris.dummy_driver_pools == ['gold', 'silver']
    assert found.paris.dummy_driver_fail_methods == {
        'create_share': '2',
        'delete_share': 'always',
    }
    assert found.paris.dummy_driver_driver_methods_delays == {
        'create_share': '0.5'
    }


def test_a_quota_under_its_old_name_is_honoured(read):
    assert read('[DEFAULT]\nquota_shares = 7\n').quota.shares == 7


def test_a_quota_under_its_new_name_wins_over_the_old(read):
    found = read('[DEFAULT]\nquota_shares = 7\n[quota]\nshares = 8\n')
    assert found.quota.shares == 8


def test_paths_follow_the_state_path(read):
    found = read(
        '[DEFAULT]\nstate_path = /srv/state\n'
        f'enabled_share_backends = a\n[a]\n{GOOD}'
    )
    conf.backends(found)
    assert found.a.local_root == '/srv/state/local'
    assert found.a.dummy_driver_state_path == '/srv/state/dummy'
    assert found.coordination.backend_url == 'file:///srv/state'
    assert found.http_basic.users_file == '/srv/state/users'


def test_back_ends_may_be_asked_for_again(read):
    found = read(f'{TWO}[a]\n{GOOD}[b]\n{GOOD}')
    assert conf.backends(found) == conf.backends(found) == ['a', 'b']


@pytest.mark.parametrize(
    'text, told',
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
def test_back_ends_that_cannot_run_are_told(read, text, told):
    with pytest.raises(cfg.Error, match=told):
        conf.backends(read(text))


@pytest.mark.parametrize(
    'text, told',
    [
        ('[DEFAULT]\nreport_interval = often\n', 'report_interval'),
        ('[DEFAULT]\nauth_strategy = trust\n', 'auth_strategy'),
        ('[DEFAULT]\ncleanup_interval = 1\n', 'cleanup_interval'),
        ('[work]\nlease = 0\n', 'lease'),
        ('[DEFAULT]\nosapi_share_use_ssl = true\n', 'proxy'),
    ],
)
def test_a_broken_option_is_told_by_its_name(read, text, told):
    with pytest.raises(cfg.Error, match=told):
        conf.check(read(text))


def test_a_broken_option_of_a_back_end_is_told_by_its_name(read):
    found = read(
        '[DEFAULT]\nenabled_share_backends = a\n[a]\n'
        f'{GOOD}max_over_subscription_ratio = 0.5\n'
    )
    conf.backends(found)
    with pytest.raises(cfg.Error, match='max_over_subscription_ratio'):
        conf.check(found)


@pytest.mark.parametrize(
    'name, legal',
    [
        ('node-1', 'node-1'),
        ('123456789012', 'host-123456789012'),
        ('my_node', 'host-my-node'),
    ],
)
def test_any_name_of_a_machine_makes_a_legal_host(monkeypatch, name, legal):
    monkeypatch.setattr(socket, 'gethostname', lambda: name)
    assert core._hostname() == legal


def test_every_option_tells_an_operator_something():
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
        [sys.executable, '-c', code],
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == '[]'
