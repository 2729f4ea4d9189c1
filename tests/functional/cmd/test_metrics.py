"""The metrics that are read from the database, and all that there are."""

import datetime
import math
import os
import re
import time

import pytest
import sqlalchemy as sa

from manila_lite import conf as options, metrics
from manila_lite.cmd import backups
from manila_lite.cmd.build import database_metrics
from manila_lite.cmd.build.database_metrics import PROCESS_METRICS, DatabaseMetrics
from manila_lite.cmd.build.process import Process
from manila_lite.db.models import services, shares
from manila_lite.db.session import Database
from tests.functional.db import query_plans
from tests.support import databases, mass_rows

INSTANCE = shares.ShareInstance.__table__
POOL = services.Pool.__table__
SIZES = mass_rows.Sizes(
    shares=20,
    rules_of_share=1,
    snapshots=4,
    journal=20,
    messages=1,
    services=2,
    pools=4,
    projects=2,
    networks=2,
    servers=2,
    migrations=1,
    decisions=1,
    waiting=5,
)


@pytest.fixture
def db(tmp_path):
    url = f'sqlite:///{tmp_path}/db'
    databases.create_tables(url)
    db = Database(url)
    mass_rows.insert(db, SIZES)
    yield db
    db.dispose()


def read(source):
    """Return the samples of a source by name."""
    return {
        family.metric.name.removeprefix(metrics.PREFIX): family.samples
        for family in source()
    }


def test_age_of_backups_is_that_of_the_newest_of_a_kind(tmp_path):
    assert read(lambda: backups.ages('/nowhere')) == {
        'backup_age_seconds': {('daily',): math.inf}
    }
    for name, hours in (
        ('daily-20261128T003000Z.tar', 26),
        ('daily-20261129T003000Z.tar', 2),
        ('before-migration-20261101T120000Z.tar', 700),
        ('daily-20261130T003000Z.tar.part', 0),
    ):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, time.time() - hours * 3600))
    (found,) = read(lambda: backups.ages(str(tmp_path))).values()
    assert {kind: round(age / 3600) for (kind,), age in found.items()} == {
        'daily': 2,
        'before-migration': 700,
    }


def test_page_shows_the_age_where_the_option_names_backups(db, tmp_path):
    conf = options.new()
    for folder, shown in ((None, False), (str(tmp_path), True)):
        conf.set_override('backup_directory', folder, 'monitoring')
        page = database_metrics.page_of_service(Process(conf, db))
        text = b''.join(page({}, lambda *_: None)).decode()
        sample = 'manila_lite_backup_age_seconds{kind="daily"} +Inf'
        assert (sample in text.splitlines()) is shown


def test_database_shows_work_services_and_pools(db):
    found = read(DatabaseMetrics(db, 60.0, []))
    assert found['database_up'] == {(): 1}
    assert sum(found['work'].values()) == SIZES.waiting
    assert min(found['work_oldest_age_seconds'].values()) >= 0
    host = SIZES.service_host(0)
    assert found['service_enabled']['manila-share', host] == 1
    assert len(found['pool_total_bytes']) == SIZES.pools
    assert min(found['pool_total_bytes'].values()) >= 1 << 30


def test_what_drivers_report_of_their_pools_is_shown(db):
    def report(session):
        first = sa.select(sa.func.min(POOL.c.host)).scalar_subquery()
        session.run(
            sa.update(POOL)
            .where(POOL.c.host == first)
            .values(
                capabilities='{"server_open_files_ratio": 0.25,'
                ' "provisioned_capacity_gb": 2}'
            )
        )

    db.write(report)
    found = read(DatabaseMetrics(db, 60.0, []))
    assert list(found['pool_server_open_files_ratio'].values()) == [0.25]
    assert 2 << 30 in found['pool_provisioned_bytes'].values()


def test_age_of_the_last_sync_is_that_of_the_oldest_by_back_end(db):
    name = 'replica_sync_oldest_age_seconds'
    assert read(DatabaseMetrics(db, 60.0, []))[name] == {}

    def synchronise(session):
        rows = session.rows(sa.select(INSTANCE.c.id, INSTANCE.c.service_host))
        for number, row in enumerate(rows):
            session.run(
                sa.update(INSTANCE)
                .where(INSTANCE.c.id == row.id)
                .values(
                    synced_at=session.now - datetime.timedelta(seconds=1000 - number)
                )
            )
        return [row.service_host for row in rows]

    hosts = db.write(synchronise)
    found = read(DatabaseMetrics(db, 60.0, []))[name]
    assert found.keys() == {(host,) for host in hosts}
    for host in hosts:
        oldest = 1000 - hosts.index(host)
        assert oldest <= found[host,] < oldest + 60


def test_service_without_heartbeat_is_not_up(db):
    assert set(read(DatabaseMetrics(db, 60.0, []))['service_up'].values()) == {1}
    assert set(read(DatabaseMetrics(db, -1.0, []))['service_up'].values()) == {0}


def test_quota_is_shown_of_projects_that_are_named(db):
    assert read(DatabaseMetrics(db, 60.0, []))['quota_in_use'] == {}


def test_scrapes_in_quick_succession_read_once(db):
    source = DatabaseMetrics(db, 60.0, ['project'])
    with query_plans.recorded_statements() as statements:
        for _ in range(3):
            read(source)
    assert len(statements) == 4


def test_database_that_does_not_answer_leaves_out_its_metrics(tmp_path):
    db = Database(f'sqlite:///{tmp_path}/missing/db')
    assert read(DatabaseMetrics(db, 60.0, [])) == {'database_up': {(): 0}}


def test_a_source_yields_what_is_documented(db):
    names = {
        metric.name.removeprefix(metrics.PREFIX) for metric in database_metrics.METRICS
    }
    assert read(DatabaseMetrics(db, 60.0, [])).keys() == names


@pytest.mark.parametrize('metric', PROCESS_METRICS, ids=lambda one: one.name)
def test_name_and_labels_follow_the_conventions(metric):
    assert re.fullmatch('manila_lite_[a-z_]+', metric.name)
    assert metric.name.endswith('_total') == (metric.kind == 'counter')
    assert metric.help.endswith('.')
    assert not set(metric.labels) & {'id', 'share', 'user', 'le'}
    assert 'project' not in metric.labels or 'quota' in metric.name


def test_every_metric_has_a_name_of_its_own():
    assert len({metric.name for metric in PROCESS_METRICS}) == len(PROCESS_METRICS)
