"""Warnings about locks that do not reach all share services."""

import contextlib

import pytest

from manila_lite import conf as options
from manila_lite.cmd import lock_reach
from manila_lite.db.queries.services import incarnations
from manila_lite.rpc.share import BINARY, TOPIC
from tests.functional.cmd.test_manage import upgrade_checked, verdicts
from tests.support.installation import SEPARATE, Installation

FILES, REDIS = 'file:///var/lib/locks', 'redis://locks'


def register(db, *hosts, binary=BINARY):
    for host in hosts:
        db.write(
            incarnations.register,
            host=host,
            binary=binary,
            topic=TOPIC,
            zone='zone',
            incarnation=f'process of {host}',
            enabled=True,
            down_time=60,
        )


def configure(url, host='one'):
    conf = options.new()
    conf.set_override('backend_url', url, group='coordination')
    conf.set_override('host', host)
    return conf


@pytest.mark.parametrize(
    'url, hosts, is_logged',
    [
        (FILES, [], False),
        (FILES, ['one@north', 'one@south'], False),
        (FILES, ['two@north'], True),
        (FILES, ['one@north', 'two@south'], True),
        ('ipc://', ['two@north'], True),
        (REDIS, ['one@north', 'two@south'], False),
        ('etcd3+http://locks', ['one@north', 'two@south'], False),
    ],
)
def test_share_service_warns_of_locks_that_end_at_its_host(
    db, caplog, url, hosts, is_logged
):
    register(db, *hosts)
    lock_reach.warn(configure(url), db)
    assert ('share services run on 2 hosts: one, two' in caplog.text) == (is_logged)


def test_share_service_warns_when_it_starts(tmp_path):
    """Without a broker: it starts all the same."""
    installation = Installation(
        tmp_path,
        kind=SEPARATE,
        options='transport_url = rabbit://guest:guest@127.0.0.1:1//',
    )
    with contextlib.closing(installation):
        register(installation.db, 'elsewhere@north')
        share = installation.start('share').running['share']
        assert 'share services run on 2 hosts: elsewhere, ' in share.output


def test_hosts_without_share_services_do_not_count(db, caplog):
    register(db, 'two', binary='manila-scheduler')
    lock_reach.warn(configure(FILES), db)
    assert caplog.text == ''


def test_upgrade_check_warns_of_locks_that_end_at_their_host(db, state, configured):
    where = ('--state-dir', state)
    register(db, 'one@north', 'two@south')
    printed = upgrade_checked(*where, code=1)
    assert verdicts(printed)['Lock service'] == 'Warning'
    redis = configured(f'[coordination]\nbackend_url = {REDIS}\n')
    printed = upgrade_checked(*where, *redis, code=0)
    assert verdicts(printed)['Lock service'] == 'Success'
