"""Share types on every database: uniqueness, references and races."""

from oslo_db import exception as db_exc
import pytest

from manila_lite.db.models import types
from tests.functional.api.plain_client import FOREIGN, MEMBER, MINE
from tests.functional.api.types import rows
from tests.support import sampling
from tests.support.concurrent_calls import at_once
from tests.support.rows import INSTANCE, delete_share

TABLES = [
    types.ShareType.__table__,
    types.ShareTypeExtraSpec.__table__,
    types.ShareTypeProject.__table__,
    rows.LIMIT,
]


@pytest.fixture
def api(api_on_every_database):
    return api_on_every_database


def test_life_cycle_of_a_type(api):
    type_id = api.create_type('fast', {'a': '1', 'b': '2'}, public=False)['id']
    path = f'/types/{type_id}'
    api.refused(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'fast',
                'extra_specs': {'driver_handles_share_servers': True},
            }
        },
        expect=409,
    )
    other = api.create_type('Fast')['id']  # another name than fast
    api.refused('PUT', f'/types/{other}', {'share_type': {'name': 'fast'}}, expect=409)
    api('PUT', path, {'share_type': {'name': 'faster', 'description': 'x'}})
    api('PUT', path, {'share_type': {'name': 'faster'}})
    api('POST', f'{path}/extra_specs', {'extra_specs': {'b': '3', 'B': '4'}})
    api('DELETE', f'{path}/extra_specs/a', expect=202)
    add = {'addProjectAccess': {'project': MINE}}
    api('POST', f'{path}/action', add, expect=202)
    api.refused('POST', f'{path}/action', add, expect=409)
    (shown,) = (item for item in api.get('/types?is_public=False')['share_types'])
    assert (shown['name'], shown['description'], shown['extra_specs']) == (
        'faster',
        'x',
        {'driver_handles_share_servers': 'False', 'b': '3', 'B': '4'},
    )
    for project, seen in ((MINE, 2), (FOREIGN, 1)):
        assert (
            len(api.get('/types', roles=MEMBER, project=project)['share_types']) == seen
        )
    assert [
        access['project_id']
        for access in api.get(f'{path}/share_type_access')['share_type_access']
    ] == [MINE]


def test_type_in_use_is_not_deleted(api):
    path = '/types/{id}'.format(**api.create_type())
    share_id = api.db.write(rows.insert_share, path[7:], MINE)
    api.db.write(rows.insert_quota, path[7:], MINE)
    before = api.all_rows()
    assert 'in use' in api.refused('DELETE', path)
    assert api.all_rows() == before
    api.db.write(delete_share, share_id)
    assert api('DELETE', path, expect=202) is None


@pytest.mark.facts('LP1811680')
def test_dependent_rows_are_deleted_with_the_type(api):
    gone = api.create_type('gone', public=False)['id']
    kept = api.create_type('kept', public=False)['id']
    for type_id, project in ((gone, MINE), (kept, FOREIGN)):
        api(
            'POST',
            f'/types/{type_id}/action',
            {'addProjectAccess': {'project': project}},
            expect=202,
        )
        api.db.write(rows.insert_quota, type_id, project)
    api('DELETE', f'/types/{gone}', expect=202)
    api.refused('GET', f'/types/{gone}', expect=404)
    assert api.db.read(
        lambda session: [rows.count(session, table) for table in TABLES]
    ) == [1, 1, 1, 1]
    # the usage rows of the projects remain, one each
    assert api.db.read(rows.count, rows.USAGE) == 3


@sampling.dialects
def test_one_of_several_requests_gets_the_name(api):
    body = {
        'share_type': {
            'name': 'n',
            'extra_specs': {'driver_handles_share_servers': True},
        }
    }
    answers = at_once(*[lambda: api.send('POST', '/types', body)] * 4)
    assert sorted(answer.status_int for answer in answers) == [200, 409, 409, 409]


@sampling.dialects
def test_one_of_several_requests_grants_access(api):
    path = '/types/' + api.create_type(public=False)['id']
    add = {'addProjectAccess': {'project': MINE}}
    answers = at_once(*[lambda: api.send('POST', f'{path}/action', add)] * 4)
    assert sorted(answer.status_int for answer in answers) == [202, 409, 409, 409]


@sampling.dialects
def test_concurrently_set_extra_specs_are_all_stored(api):
    path = '/types/{id}/extra_specs'.format(**api.create_type())
    at_once(
        *[
            lambda number=number: api(
                'POST', path, {'extra_specs': {'same': 'v', f'k{number}': 'v'}}
            )
            for number in range(4)
        ]
    )
    assert api.get(path)['extra_specs'] == {
        'driver_handles_share_servers': 'False',
        'same': 'v',
        'k0': 'v',
        'k1': 'v',
        'k2': 'v',
        'k3': 'v',
    }


@sampling.dialects
@pytest.mark.parametrize('attempt', range(5))
def test_either_the_deletion_or_the_new_share_wins(api, attempt):
    type_id = api.create_type()['id']

    def create():
        try:
            return api.db.write(rows.insert_share, type_id, MINE)
        except db_exc.DBReferenceError:
            return None

    share_id, deletion = at_once(
        create, lambda: api.send('DELETE', f'/types/{type_id}')
    )
    assert deletion.status_int == (202 if share_id is None else 400)
    types_left = 0 if share_id is None else 1
    assert api.db.read(rows.count, TABLES[0]) == types_left
    assert api.db.read(rows.count, INSTANCE) == types_left
