"""The database derives the service from the host on every write."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Database
from tests.support import sampling
from tests.support.rows import insert_instance, insert_share

pytestmark = sampling.dialects


INSTANCE = shares.ShareInstance.__table__

SERVICES = {
    'node@backend#pool': 'node@backend',
    'node@backend#pool#1': 'node@backend',
    'node@backend': 'node@backend',
    'node@back_end%#pool': 'node@back_end%',
    'node@backend2#pool': 'node@backend2',
    'Knoten@rück#pool': 'Knoten@rück',
    None: None,
}


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    yield db
    db.dispose()


def insert(session, host):
    insert_instance(session, insert_share(session), host=host, status='migrating')


def derived(db):
    return db.read(lambda session: session.value(sa.select(INSTANCE.c.service_host)))


@pytest.mark.parametrize('host, service', SERVICES.items())
def test_service_is_derived_from_a_new_host(db, host, service):
    db.write(insert, host)
    assert derived(db) == service


def test_service_follows_a_changed_host(db):
    db.write(insert, None)
    for host, service in SERVICES.items():
        # As a process of an earlier release does, which knows no such column.
        db.write(
            lambda session, host=host: session.run(
                sa.text('UPDATE share_instances SET host = :new'), new=host
            )
        )
        assert derived(db) == service


@pytest.mark.parametrize(
    'service, found', [('node@b_ck', 1), ('node@back', 0), ('node@bxck', 0)]
)
def test_only_the_service_itself_finds_its_rows(db, service, found):
    db.write(insert, 'node@b_ck#pool')
    assert len(db.read(recovery.list_stuck, 'share_instance', service, most=9)) == found


@pytest.mark.parametrize(
    'host, found', [('node@b_ck', 2), ('node@b_ck#1', 1), ('node@bxck', 0)]
)
def test_decisions_are_listed_by_service_and_by_pool(db, host, found):
    for pool in ('1', '2'):
        db.write(
            recovery.record_decision,
            resource='share_instance',
            resource_id='instance',
            host=f'node@b_ck#{pool}',
            status_before='migrating',
            action='given up',
            duration=0.0,
        )
    assert len(db.read(recovery.list_log, limit=9, host=host)) == found
