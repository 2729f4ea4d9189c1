"""Published options that no other test sets: what their values change."""

import pathlib
import random

import pytest
import sqlalchemy as sa

from manila_lite import conf as options
from manila_lite.db.models.shares import Transfer
from manila_lite.db.queries.shares import migrations as migration_rows
from manila_lite.scheduler.weighers import PoolWeigher
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.plain_driver import PlainDriver
from tests.support import host_assisted, share_backups, share_migrations as migrations
from tests.support.dhss import ShareServersCloud
from tests.support.share_transfers import offer


def test_lengths_of_the_key_and_the_salt_of_transfers(build_cloud):
    cloud = build_cloud(
        'share_transfer_key_length = 20\nshare_transfer_salt_length = 9'
    )
    offered = offer(cloud.api, cloud.create_share())
    assert len(offered['auth_key']) == 20
    salt = cloud.db.read(lambda s: s.value(sa.select(Transfer.__table__.c.salt)))
    assert len(salt) == 9


def test_prefix_of_mount_points(build_cloud):
    cloud = build_cloud('default_mount_point_prefix = kept-')
    body = {
        'share_type': {
            'name': 'mounts',
            'extra_specs': {
                'driver_handles_share_servers': 'False',
                'mount_point_name_support': 'True',
            },
        }
    }
    cloud.api.request('POST', '/types', body, expect=200)
    share = cloud.api.create(share_type='mounts', mount_point_name='data')['id']
    (found,) = cloud.api.get('/shares?mount_point_name=kept-data')['shares']
    assert found['id'] == share


@pytest.mark.parametrize(
    'option, task',
    [
        ('check_for_expired_shares_in_recycle_bin_interval', 'recycle bin'),
        ('check_for_expired_transfers', 'share transfers'),
    ],
)
def test_interval_of_a_task(build_cloud, option, task):
    cloud = build_cloud(f'{option} = 77')
    tasks = {one.name: one.interval for one in cloud.share.tasks}
    assert tasks[task] == 77


def test_first_runs_of_tasks_are_spread_over_the_fuzzy_delay(build_cloud, monkeypatch):
    cloud = build_cloud('periodic_fuzzy_delay = 7')
    ranges = []
    monkeypatch.setattr(
        random.Random, 'uniform', lambda rng, low, high: ranges.append((low, high)) or 0
    )
    cloud.restart()
    assert max(ranges) == (0, 7)


def test_multiplier_of_the_pool_weigher(build_cloud, monkeypatch):
    built = []

    def init(weigher, multiplier=1.0):
        super(PoolWeigher, weigher).__init__(multiplier)
        built.append(weigher.multiplier)

    monkeypatch.setattr(PoolWeigher, '__init__', init)
    build_cloud(
        'pool_weight_multiplier = -3\nscheduler_default_weighers = PoolWeigher',
        prepared=False,
    )
    assert built == [-3.0]


@pytest.mark.parametrize(
    'options, tasks',
    [
        ('automatic_share_server_cleanup = false', 0),
        ('unused_share_server_cleanup_interval = 10', 1),
    ],
)
def test_clean_up_of_unused_share_servers(build_cloud, options, tasks):
    cloud = build_cloud(options, kind=ShareServersCloud, backends=['alpha'])
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    found = [one for one in cloud.share.tasks if one.name == 'unused share servers']
    assert len(found) == tasks
    for seconds, left in ((590, 1), (20, 0)):
        cloud.clock.advance(seconds)
        for task in found:
            task.run()
            cloud.settle()
            assert len(cloud.servers()) == left


def test_ignored_files_are_not_copied_to_another_back_end(build_cloud):
    cloud = build_cloud(
        migrations.SHORT_POLL_INTERVAL, backend_conf='migration_ignore_files = below'
    )
    share = host_assisted.create(cloud)
    host_assisted.start(cloud, share)
    cloud.settle()
    row = cloud.db.read(migration_rows.find_latest, share)
    copied = host_assisted.content_of(cloud, 'beta', row.destination_instance_id)
    assert host_assisted.names(copied) == {'link', 'lost+found'}


def test_ignored_files_are_not_backed_up(build_cloud):
    cloud = build_cloud('backup_ignore_files = below', backends=['alpha'])
    backup = share_backups.create(cloud)
    (copy,) = pathlib.Path(cloud.conf.backup_folder).glob(f'{backup}.*')
    names = {path.name for path in copy.rglob('*')}
    assert 'first' in names
    assert 'below' not in names


def test_names_of_backups_of_a_driver(build_cloud):
    cloud = build_cloud('share_backup_name_template = kept-%s', backends=['alpha'])
    driver, names = cloud.driver(), []
    create_backup = driver.create_backup

    def note(context, share, backup, *args):
        names.append(backup['name'])
        return create_backup(context, share, backup, *args)

    driver.create_backup = note
    backup = share_backups.create(cloud, **share_backups.BY_DRIVER)
    assert names == [f'kept-{backup}']


def test_percentage_reserved_from_copies_of_snapshots():
    conf = Configuration.from_values(
        {
            'driver_handles_share_servers': False,
            'reserved_share_percentage': 5,
            'reserved_share_from_snapshot_percentage': 3,
        }
    )
    stats = PlainDriver(False, configuration=conf).get_share_stats(refresh=True)
    assert stats['reserved_percentage'] == 5
    assert stats['reserved_snapshot_percentage'] == 3


def test_tls_of_the_api_itself_is_refused(configured):
    _, file = configured('[DEFAULT]\nosapi_share_use_ssl = true\n')
    with pytest.raises(options.BadConfiguration, match='osapi_share_use_ssl'):
        options.check(options.new(files=[file]))
