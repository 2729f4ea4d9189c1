"""Share group types: their life, their specs, and their projects."""

from concurrent import futures

import pytest

from tests.functional.api.plain_client import ADMIN, FOREIGN, MEMBER, MINE
from tests.support import sampling

PATH = '/share-group-types'
NO_TYPE = '7fa1342b-de9d-4d89-bdc8-af67795c0e52'


def create(api, name='group', **values):
    values.setdefault('share_types', [share_type(api)])
    return api('POST', PATH, {'share_group_type': {'name': name, **values}})[
        'share_group_type'
    ]


def share_type(api, name='fast', **options):
    found = {each['name']: each['id'] for each in list_share_types(api)}
    return found.get(name) or api.create_type(name, **options)['id']


def list_share_types(api):
    return api.get('/types?is_public=all')['share_types']


def listed(api, query='', **options):
    found = api.get(PATH + query, **options)['share_group_types']
    return [each['name'] for each in found]


def test_type_shows_the_values_it_was_created_with(api):
    members = sorted([share_type(api), share_type(api, 'slow')])
    created = create(
        api,
        group_specs={'consistent_snapshot_support': 'host', 'gold': True},
        share_types=[members[0], 'slow', members[0], 'fast'],
    )
    assert created == {
        'id': created['id'],
        'name': 'group',
        'is_public': True,
        'is_default': False,
        'group_specs': {'consistent_snapshot_support': 'host', 'gold': 'True'},
        'share_types': members,
    }
    shown = api.get(f'{PATH}/{created["id"]}')
    assert shown == {'share_group_type': created}


def test_id_of_a_share_type_comes_before_the_name_of_another(api):
    first = share_type(api)
    api.create_type(first)
    assert create(api, share_types=[first])['share_types'] == [first]


def test_a_deleted_type_is_gone_with_its_specs_and_projects(api):
    share_type(api)
    before = api.all_rows()
    created = create(api, group_specs={'gold': 'yes'}, is_public=False)
    path = f'{PATH}/{created["id"]}'
    api('POST', f'{path}/action', project('add', MINE), expect=202)
    assert api('DELETE', path, expect=204) is None
    assert api.all_rows() == before
    api.refused('GET', path, expect=404)
    api.refused('DELETE', path, expect=404)


@pytest.mark.facts('LP1699836')
def test_share_type_of_a_group_type_is_in_use(api_on_every_database):
    api = api_on_every_database
    created = create(api)
    (member,) = created['share_types']
    assert 'in use' in api.refused('DELETE', f'/types/{member}')
    api('DELETE', f'{PATH}/{created["id"]}', expect=204)
    api('DELETE', f'/types/{member}', expect=202)


@sampling.dialects
def test_share_type_is_deleted_or_used_but_not_both(api_on_every_database):
    api = api_on_every_database
    ended = set()
    for number in range(15):
        member = api.create_type(f'type-{number}')['id']
        body = {'name': f'group-{number}', 'share_types': [member]}
        with futures.ThreadPoolExecutor(2) as pool:
            answers = [
                pool.submit(api.send, 'POST', PATH, {'share_group_type': body}),
                pool.submit(api.send, 'DELETE', f'/types/{member}'),
            ]
        ended.add(tuple(each.result().status_int for each in answers))
    assert ended <= {(200, 400), (404, 202)}


@sampling.dialects
def test_a_name_is_used_once(api_on_every_database):
    create(api_on_every_database)
    body = {'share_group_type': {'name': 'group', 'share_types': ['fast']}}
    message = api_on_every_database.refused('POST', PATH, body, expect=409)
    assert 'group already exists' in message


@pytest.mark.parametrize(
    'values, text',
    [
        ({'share_types': []}, 'share_types'),
        ({'share_types': 'fast'}, 'share_types'),
        ({'share_types': [7]}, 'share_types'),
        ({'share_types': None}, 'share_types'),
        ({'name': ' '}, 'name'),
        ({'name': 'x' * 256}, 'name'),
        ({'is_public': 'maybe'}, 'is_public'),
        ({'group_specs': ['x']}, 'group_specs'),
        ({'group_specs': {'a b': 'x'}}, 'a b'),
        ({'group_specs': {'a': 7}}, 'group_specs'),
        ({'group_specs': {'a': ''}}, 'group_specs'),
        ({'group_specs': {'a': 'x' * 256}}, 'group_specs'),
    ],
)
@pytest.mark.facts('share_group_type_name')
def test_invalid_values_are_refused(api, values, text):
    good = {'name': 'group', 'share_types': [share_type(api)]}
    before = api.all_rows()
    body = {'share_group_type': good | values}
    assert text in api.refused('POST', PATH, body)
    assert api.all_rows() == before


@pytest.mark.parametrize('missing', ['name', 'share_types'])
def test_name_and_share_types_are_required(api, missing):
    body = {'name': 'group', 'share_types': [share_type(api)]}
    del body[missing]
    assert missing in api.refused('POST', PATH, {'share_group_type': body})


@pytest.mark.facts('share_group_type_is_public', 'share_group_type_name')
def test_type_is_public_unless_it_says_otherwise(api):
    body = {'name': 'x' * 255, 'share_types': [share_type(api)]}
    made = api('POST', PATH, {'share_group_type': body})
    assert made['share_group_type']['is_public'] is True
    assert made['share_group_type']['name'] == 'x' * 255
    assert listed(api, roles=MEMBER, project=FOREIGN) == ['x' * 255]


def test_unknown_share_types_are_not_found(api):
    share_type(api)
    before = api.all_rows()
    body = {'name': 'group', 'share_types': ['fast', NO_TYPE]}
    message = api.refused('POST', PATH, {'share_group_type': body}, expect=404)
    assert NO_TYPE in message
    assert api.all_rows() == before


def project(verb, id):
    return {f'{verb}ProjectAccess': {'project': id}}


def test_projects_see_public_types_and_those_they_may_use(api):
    create(api, 'public')
    for name, owner in (('mine', MINE), ('foreign', FOREIGN)):
        id = create(api, name, is_public=False)['id']
        path = f'{PATH}/{id}/action'
        api('POST', path, project('add', owner), expect=202)
    assert listed(api, roles=MEMBER) == ['mine', 'public']
    assert listed(api, '?is_public=all', roles=MEMBER) == ['mine', 'public']
    assert listed(api, roles=MEMBER, project=FOREIGN) == ['foreign', 'public']
    assert listed(api, roles=ADMIN) == ['mine', 'public']
    assert listed(api, '?is_public=all') == ['foreign', 'mine', 'public']
    assert listed(api, '?is_public=false') == ['foreign', 'mine']
    api.refused('GET', f'{PATH}/{id}', expect=404, roles=MEMBER)


@pytest.mark.facts('share-group-types.2')
def test_access_is_granted_listed_and_revoked(api):
    id = create(api, is_public=False)['id']
    path = f'{PATH}/{id}'
    for each in (MINE, FOREIGN):
        api('POST', f'{path}/action', project('add', each), expect=202)
    again = project('add', MINE)
    api.refused('POST', f'{path}/action', again, expect=409)
    assert api.get(f'{path}/access') == {
        'share_group_type_access': [
            {'share_group_type_id': id, 'project_id': FOREIGN},
            {'share_group_type_id': id, 'project_id': MINE},
        ]
    }
    api('POST', f'{path}/action', project('remove', MINE), expect=202)
    api.refused('POST', f'{path}/action', project('remove', MINE), expect=404)
    api.refused('GET', f'{path}/access', expect=403, roles=MEMBER)


@pytest.mark.facts('share-group-types.2')
def test_public_types_have_no_access_list(api):
    path = f'{PATH}/{create(api)["id"]}'
    assert 'public' in api.refused('GET', f'{path}/access', expect=404)
    for verb in ('add', 'remove'):
        api.refused('POST', f'{path}/action', project(verb, MINE), expect=409)


def test_specs_are_set_changed_and_deleted(api):
    path = f'{PATH}/{create(api, group_specs={"a": "1"})["id"]}/group-specs'
    sent = {'group_specs': {'b': 'x', 'c': True}}
    assert api('POST', path, sent) == sent
    assert api.get(path) == {'group_specs': {'a': '1', 'b': 'x', 'c': 'True'}}
    assert api('PUT', f'{path}/a', {'a': '2'}) == {'a': '2'}
    assert api.get(f'{path}/a') == {'a': '2'}
    assert api('DELETE', f'{path}/b', expect=204) is None
    assert api.get(path) == {'group_specs': {'a': '2', 'c': 'True'}}
    api.refused('DELETE', f'{path}/b', expect=404)
    api.refused('GET', f'{path}/b', expect=404)


def test_body_for_one_spec_has_exactly_its_key(api):
    path = f'{PATH}/{create(api)["id"]}/group-specs/a'
    for body in ({'b': 'x'}, {'a': 'x', 'b': 'x'}, {}):
        assert 'a and nothing else' in api.refused('PUT', path, body)


def test_specs_of_unknown_types_are_not_found(api):
    path = f'{PATH}/{NO_TYPE}/group-specs'
    api.refused('GET', path, expect=404)
    api.refused('POST', path, {'group_specs': {'a': 'x'}}, expect=404)
    api.refused('PUT', f'{path}/a', {'a': 'x'}, expect=404)
    api.refused('DELETE', f'{path}/a', expect=404)


@pytest.mark.facts('bp-support-group-spec-search')
def test_types_are_filtered_by_specs_since_2_66(api):
    create(api, 'gold', group_specs={'class': 'gold', 'fast': True})
    create(api, 'plain')
    query = "?group_specs={'class': 'gold'}"
    assert listed(api, query, minor=66) == ['gold']
    assert listed(api, "?group_specs={'class': 'tin'}") == []
    assert '2.66' in api.refused('GET', PATH + query, minor=65)


def test_there_may_be_no_default(api):
    create(api)
    api.refused('GET', f'{PATH}/default', expect=404)


def test_list_takes_the_same_statements_whatever_its_length(api):
    counts = set()
    for number in range(3):
        create(api, f'group-{number}', group_specs={'a': 'x', 'b': 'x'})
        with api.record_statements() as sent:
            assert len(listed(api)) == number + 1
        counts.add(len(sent))
    assert counts == {2}
