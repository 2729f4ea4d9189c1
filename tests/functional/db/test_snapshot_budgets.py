"""The exact number of SQL statements of requests about snapshots."""

import pytest

from tests.functional.api.snapshot_client import create_snapshot, delete_snapshot
from tests.functional.db import test_sql_budgets as budgets
from tests.functional.db.test_sql_budgets import cost, created
from tests.support.cloud_snapshots import enable_snapshot_features, revert

MANY = 30

cloud = budgets.cloud


def taken(cloud, share, **body):
    snapshot = create_snapshot(cloud.api, share, **body)['id']
    budgets.carry_out(cloud)
    return snapshot


@pytest.mark.parametrize(
    'metadata, statements', [({}, 8), ({'color': 'red', 'shape': 'round'}, 9)]
)
def test_take_snapshot(cloud, metadata, statements):
    share = created(cloud)
    taken(cloud, share)  # the first one inserts rows of quota usage
    _, accepted = cost(cloud, create_snapshot, cloud.api, share, metadata=metadata)
    assert accepted == statements
    assert cost(cloud, budgets.carry_out, cloud)[1] == 7


@pytest.mark.parametrize(
    'size, accepted, carried_out', [(2, 8, 14), (4, 9, 17), (1, 8, 17)]
)
def test_revert(cloud, size, accepted, carried_out):
    enable_snapshot_features(cloud)
    share = created(cloud, size=size)
    snapshot = taken(cloud, share)
    for verb in ('shrink', 'extend'):
        cloud.api.act(share, verb, {'new_size': 2}, expect=None)
        budgets.carry_out(cloud)
    assert cost(cloud, revert, cloud, share, snapshot)[1] == accepted
    assert cost(cloud, budgets.carry_out, cloud)[1] == carried_out
    assert cloud.api.show(share)['size'] == size


def test_delete_snapshot(cloud):
    snapshot = taken(cloud, created(cloud), metadata={'color': 'red'})
    assert cost(cloud, delete_snapshot, cloud.api, snapshot)[1] == 6
    assert cost(cloud, budgets.carry_out, cloud)[1] == 9


@pytest.mark.parametrize('version', ['2.0', '2.99'])
def test_show_snapshot(cloud, version):
    snapshot = taken(cloud, created(cloud), metadata={'color': 'red'})
    _, statements = cost(
        cloud, cloud.api.get, f'/snapshots/{snapshot}', version=version
    )
    assert statements == 1


@pytest.mark.parametrize(
    'path, statements',
    [
        ('/snapshots', 1),
        ('/snapshots?with_count=true', 2),
        ('/snapshots/detail', 2),
        ('/snapshots/detail?with_count=true&all_tenants=1', 3),
        (
            '/snapshots/detail?usage=unused&status=available&sort_key=status'
            "&metadata={'of':'all'}",
            3,  # one checks that the list is short enough to be sorted
        ),
        ('/snapshot-instances', 1),
        ('/snapshot-instances/detail', 1),
    ],
)
def test_list_of_any_length(cloud, path, statements):
    share = created(cloud)
    taken(cloud, share, metadata={'of': 'all'})
    _, of_one = cost(cloud, cloud.api.get, path)
    for _ in range(MANY):
        taken(cloud, share, metadata={'of': 'all'})
    answer, of_many = cost(cloud, cloud.api.get, path)
    assert (of_one, of_many) == (statements, statements)
    (found,) = (value for value in answer.values() if isinstance(value, list))
    assert len(found) == MANY + 1


@pytest.mark.parametrize(
    'method, path, body, statements',
    [
        ('PUT', '', {'snapshot': {'display_name': 'new'}}, 3),
        ('GET', '/metadata', None, 2),
        ('POST', '/metadata', {'metadata': {'color': 'blue'}}, 5),
        ('PUT', '/metadata', {'metadata': {'color': 'blue'}}, 6),
        ('DELETE', '/metadata/color', None, 2),
    ],
)
def test_request_about_a_snapshot(cloud, method, path, body, statements):
    snapshot = taken(cloud, created(cloud), metadata={'color': 'red'})
    _, taken_by = cost(
        cloud,
        cloud.api.request,
        method,
        f'/snapshots/{snapshot}{path}',
        body,
        expect=200,
    )
    assert taken_by == statements
