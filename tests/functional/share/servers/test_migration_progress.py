"""What a driver reports beside the percentage is kept and shown."""

import pytest

from tests.support.server_migrations import ServerMigrationCloud

STEPS = 'dummy_driver_server_migration_steps = 4'
# The clock of a real database does not advance in a test.
NO_PAUSES = 'server_migration_driver_continue_update_interval = 0'


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(
        NO_PAUSES, kind=ServerMigrationCloud, url=database_url, backend_conf=STEPS
    )


def report(cloud, **details):
    """Make the driver report this in addition to the percentage."""
    driver = cloud.driver('beta')
    ask = type(driver).share_server_migration_get_progress

    def get_progress(*args, **kwargs):
        return {**ask(driver, *args, **kwargs), **details}

    driver.share_server_migration_get_progress = get_progress


@pytest.fixture
def server(cloud):
    return cloud.server_of(cloud.create_share_on_alpha(cloud.add_network()))


def await_report(cloud, server):
    """Run work until the driver has reported details; return the answer."""
    for _ in range(50):
        found = cloud.progress(server)
        if found['details']:
            return found
        cloud.step()
    raise AssertionError('the driver was not asked')


@pytest.mark.facts('LP2025075')
def test_details_are_shown_until_the_end_and_after_it(cloud, server):
    report(cloud, phase='copy', password='sesame')
    shown = {'phase': 'copy', 'password': '***'}
    cloud.start(server)
    assert cloud.progress(server)['details'] == {}
    found = await_report(cloud, server)
    assert found['details'] == shown
    assert found['total_progress'] < 100
    cloud.settle()
    found = cloud.progress(server)
    assert (found['total_progress'], found['details']) == (100, shown)
    cloud.complete(server)
    cloud.settle()
    assert cloud.progress(server)['details'] == shown


def test_details_are_those_of_the_last_reply(cloud, server):
    report(cloud, phase='copy')
    cloud.start(server)
    await_report(cloud, server)
    report(cloud, left='3 files')
    assert cloud.progress(server)['details'] == {'left': '3 files'}
    cloud.driver('beta').fail_next('share_server_migration_get_progress')
    assert cloud.progress(server)['details'] == {'left': '3 files'}
    report(cloud)
    assert cloud.progress(server)['details'] == {}
