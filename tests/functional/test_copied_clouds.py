"""A copied cloud is like a new one, and nothing of a test is in the next."""

import pytest
import sqlalchemy as sa

from manila_lite.db import models
from tests.support.cloud import Cloud


@pytest.fixture
def build(tmp_path):
    clouds = []

    def build(**options):
        folder = tmp_path / str(len(clouds))
        folder.mkdir()
        clouds.append(Cloud(folder, **options))
        return clouds[-1]

    yield build
    for cloud in clouds:
        cloud.db.dispose()


def sizes(cloud):
    return {
        table.name: cloud.db.read(
            lambda session, table=table: session.value(
                sa.select(sa.func.count()).select_from(table)
            )
        )
        for table in models.metadata.sorted_tables
    }


def test_copy_has_as_many_rows_as_a_new_cloud(build):
    new, copy = build(), build(prepared=True)
    assert sizes(copy) == sizes(new)
    new.settle()
    copy.settle()
    assert sizes(copy) == sizes(new)
    assert [
        service['state'] for service in copy.api.get('/services')['services']
    ] == 4 * ['up']


def test_shares_of_a_copy_are_what_was_created_in_it(build):
    for seed in range(2):
        cloud = build(prepared=True, seed=seed)
        found = [cloud.create_share(), cloud.create_share(size=2)]
        found += [cloud.create_share(), cloud.create_share(size=2)]
        shares = cloud.api.get('/shares')['shares']
        assert {share['id'] for share in shares} == set(found)
        assert len(shares) == 4
        cloud.api.delete(found[0])
        cloud.settle()
        assert cloud.usage('gigabytes') == (5, 0)
        cloud.check_invariants()


def test_what_has_happened_is_not_undone_by_a_preparation(build):
    def prepare(cloud):
        cloud.prepare(lambda: None, 'nothing')

    prepare(build(prepared=True))
    cloud = build(prepared=True)
    created = cloud.api.create()['id']
    prepare(cloud)
    assert cloud.api.show(created)
    cloud = build(prepared=True)
    driver = cloud.driver()
    prepare(cloud)
    assert cloud.driver() is driver
    cloud = build(prepared=True)
    services = cloud.services
    prepare(cloud)
    assert cloud.services is services


def test_services_of_a_copy_start_before_its_invariants_are_checked(build):
    for _ in range(2):
        cloud = build(prepared=True, backends=['alpha'])
        cloud.create_share()
        cloud.check_invariants()
