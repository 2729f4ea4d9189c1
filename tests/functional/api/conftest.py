import functools

import pytest

from manila_lite import conf as configuration
from manila_lite.db.session import Database
from manila_lite.policies.enforcer import Enforcer
from tests.functional.api import plain_client
from tests.functional.api.examples import (
    access as access_examples,
    admin as admin_examples,
    backups as backup_examples,
    groups as group_examples,
    lists,
    migrations,
    networks as network_examples,
    replicas as replica_examples,
    servers as server_examples,
    share_migrations,
    shares as share_examples,
    snapshots as snapshot_examples,
    transfers as transfer_examples,
)
from tests.functional.api.samples.cloud import SampleCloud
from tests.functional.api.views import (
    access as access_views,
    admin as admin_views,
    backups as backup_views,
    groups as group_views,
    networks as network_views,
    replicas,
    servers as server_views,
    shares as share_views,
    snapshots as snapshot_views,
    transfers as transfer_views,
)
from tests.support.api_client import ApiClient
from tests.support.clock import ManualClock
from tests.support.cloud import BACKENDS
from tests.support.databases import empty_tables, share_statements
from tests.support.snapshot_access import (
    create_mountable_snapshot,
    enable_snapshot_mounts,
)

EXAMPLES = (
    access_examples,
    admin_examples,
    backup_examples,
    group_examples,
    lists,
    migrations,
    network_examples,
    replica_examples,
    server_examples,
    share_examples,
    share_migrations,
    snapshot_examples,
    transfer_examples,
)
"""Modules that register examples when imported."""

VIEWS = (
    access_views,
    admin_views,
    backup_views,
    group_views,
    network_views,
    replicas,
    server_views,
    share_views,
    snapshot_views,
    transfer_views,
)
"""Modules that register views when imported."""


@pytest.fixture(scope='module')
def sample_cloud(tmp_path_factory):
    """Return the cloud of `sample`, built once for all tests of a module."""
    sample = SampleCloud(tmp_path_factory.mktemp('sample'))
    yield sample
    sample.close()


@pytest.fixture
def sample(sample_cloud):
    """Return a cloud with sample resources, as it was when it was built."""
    sample_cloud.rewind()
    return sample_cloud


@pytest.fixture
def copies_clouds():
    return True


@pytest.fixture
def cloud(build_cloud):
    """Return a cloud with only a share type."""
    return build_cloud()


@pytest.fixture
def admin(cloud):
    """Return the client of an administrator in the member's project."""
    return cloud.api


@pytest.fixture
def member(cloud):
    return member_of(cloud)


@pytest.fixture
def stranger(cloud):
    """Return the client of a member of another project."""
    return member_of(cloud, 'another')


@pytest.fixture
def colleague(cloud):
    """Return the client of another member of the project."""
    return ApiClient(cloud, project='project', user='colleague', roles='member,reader')


@pytest.fixture
def share(cloud, member):
    """Return the id of an available share of the member."""

    def create():
        share_id = member.create()['id']
        cloud.settle()
        return share_id

    return cloud.prepare(create, 'share of the member')


@pytest.fixture
def mount(cloud, member):
    """Return the rules of a mountable snapshot of the member."""
    enable_snapshot_mounts(cloud)
    return create_mountable_snapshot(cloud, member)


def member_of(cloud, project='project'):
    return ApiClient(
        cloud, project=project, user=f'user of {project}', roles='member,reader'
    )


def create_type(cloud, name='special', public=True, **extra_specs):
    """Create a share type without share servers; return its name."""
    specs = {'driver_handles_share_servers': 'False'} | {
        key.replace('__', ':'): value for key, value in extra_specs.items()
    }
    cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': name,
                'share_type_access:is_public': public,
                'extra_specs': specs,
            }
        },
        expect=200,
    )
    return name


@pytest.fixture
def make_type(cloud):
    """Return `create_type` for the cloud."""
    return functools.partial(create_type, cloud)


@pytest.fixture
def fail_next_call(cloud):
    """Return a function that makes the next driver call fail, anywhere."""

    def fail(method, error=None):
        for name in BACKENDS:
            cloud.driver(name).faults.fail_next(method, error=error)

    return fail


# Plain records


@pytest.fixture
def clock():
    return ManualClock(1_700_000_000.0)


@pytest.fixture(scope='session')
def conf(tmp_path_factory):
    file = tmp_path_factory.mktemp('conf') / 'manila_lite.conf'
    file.write_text('[DEFAULT]\ndefault_share_type = default\n')
    return configuration.new(files=[str(file)])


@pytest.fixture(scope='session')
def enforcer(tmp_path_factory):
    folder = tmp_path_factory.mktemp('policy')
    return Enforcer(configuration.new(['--config-dir', str(folder)]))


@pytest.fixture
def api(shared_database, conf, enforcer, clock):
    """Return a client of the application on SQLite with empty tables."""
    url = shared_database('sqlite')
    empty_tables(url)
    db = share_statements(Database(url, clock=clock))
    yield plain_client.Api(db, conf, enforcer)
    db.dispose()


@pytest.fixture
def api_on_every_database(database_url, conf, enforcer):
    """Return a client of the application, on each database in turn."""
    db = share_statements(Database(database_url))
    yield plain_client.Api(db, conf, enforcer)
    db.dispose()
