"""Share types are created, shown, listed, changed and deleted."""

import pytest

from tests.functional.api.plain_client import ADMIN, FOREIGN, MEMBER, MINE

NO_TYPE = '7fa1342b-de9d-4d89-bdc8-af67795c0e52'


def names(answer):
    assert answer['share_types'] == answer['volume_types']
    return [item['name'] for item in answer['share_types']]


def share_type_of(answer):
    assert answer['share_type'] == answer['volume_type']
    return answer['share_type']


def test_type_shows_the_values_it_was_created_with(api):
    created = share_type_of(
        api(
            'POST',
            '/types',
            {
                'share_type': {
                    'extra_specs': {
                        'replication_type': 'readable',
                        'driver_handles_share_servers': True,
                        'snapshot_support': False,
                    },
                    'share_type_access:is_public': True,
                    'name': 'testing',
                    'description': 'share type description',
                }
            },
        )
    )
    assert created == {
        'id': created['id'],
        'name': 'testing',
        'is_default': False,
        'description': 'share type description',
        'share_type_access:is_public': True,
        'required_extra_specs': {'driver_handles_share_servers': True},
        'extra_specs': {
            'driver_handles_share_servers': 'True',
            'replication_type': 'readable',
            'snapshot_support': 'False',
        },
    }
    path = f'/types/{created["id"]}'
    updated = api('PUT', path, {'share_type': {'name': 'testing'}})
    assert share_type_of(updated) == created
    # As published, only the answers to writes have a boolean.
    assert share_type_of(api.get(path)) == created | {
        'required_extra_specs': {'driver_handles_share_servers': 'True'}
    }


@pytest.mark.parametrize(
    'text, value',
    [('<is> True', True), ('tRUE', True), ('<IS>no', False), ('oFF', False)],
)
def test_answer_to_a_write_has_every_spelling_of_a_boolean(api, text, value):
    created = share_type_of(
        api(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': 'testing',
                    'extra_specs': {'driver_handles_share_servers': text},
                }
            },
        )
    )
    assert created['required_extra_specs'] == {'driver_handles_share_servers': value}


@pytest.mark.parametrize('wrapper', ['share_type', 'volume_type'])
@pytest.mark.parametrize(
    'key', ['share_type_access:is_public', 'os-share-type-access:is_public']
)
def test_both_wrappers_and_both_keys_are_accepted(api, wrapper, key):
    answer = share_type_of(
        api(
            'POST',
            '/types',
            {
                wrapper: {
                    'name': 'odd',
                    key: 'false',
                    'extra_specs': {'driver_handles_share_servers': 'no'},
                }
            },
        )
    )
    assert answer['share_type_access:is_public'] is False


@pytest.mark.facts(
    'add-create_share_from_snapshot_support.2', 'extra_specs_request_body.1'
)
@pytest.mark.parametrize(
    'minor, shown', [(0, 'True'), (23, 'True'), (24, None), (99, None)]
)
def test_older_versions_enable_snapshots_by_default(api, minor, shown):
    item = api.create_type(minor=minor)
    assert item['extra_specs'].get('snapshot_support') == shown


def test_older_versions_can_disable_snapshots(api):
    item = api.create_type(specs={'snapshot_support': False}, minor=5)
    assert item['extra_specs']['snapshot_support'] == 'False'


@pytest.mark.facts('snapshot-inherit.3')
@pytest.mark.facts('bp-share-type-supported-azs.6')
def test_tenants_see_the_zones_of_a_type(api):
    specs = {'availability_zones': 'west,east'}
    path = f'/types/{api.create_type(specs=specs)["id"]}'
    for minor in (0, 48, 99):
        shown = api.get(path, roles=MEMBER, minor=minor)['share_type']
        assert specs.items() <= shown['extra_specs'].items()


def test_tenants_see_only_user_visible_extra_specs(api):
    type_id = api.create_type(
        specs={
            'share_backend_name': 'secret',
            'vendor': 'secret',
            'mount_snapshot_support': '<is> True',
            'provisioning:max_share_size': '10',
        }
    )['id']
    show = f'/types/{type_id}'
    seen = {
        minor: api.get(show, roles=MEMBER, minor=minor)['share_type']['extra_specs']
        for minor in (23, 24, 98, 99)
    }
    assert seen[23] == {
        'driver_handles_share_servers': 'False',
        'mount_snapshot_support': '<is> True',
        'provisioning:max_share_size': '10',
    }
    assert (
        seen[24]
        == seen[98]
        == seen[23]
        | {
            'snapshot_support': False,
            'revert_to_snapshot_support': False,
            'create_share_from_snapshot_support': False,
        }
    )
    assert seen[99] == seen[98] | {'snapshot_inherit_share_access_support': False}
    (in_list,) = api.get('/types', roles=MEMBER)['share_types']
    assert in_list['extra_specs'] == seen[99]


def test_private_types_are_visible_with_access_only(api):
    type_id = api.create_type('private', public=False)['id']
    api.create_type('public')
    api(
        'POST',
        f'/types/{type_id}/action',
        {'addProjectAccess': {'project': MINE}},
        expect=202,
    )
    assert names(api.get('/types', roles=MEMBER)) == ['private', 'public']
    api.get(f'/types/{type_id}', roles=MEMBER)
    assert names(api.get('/types', roles=MEMBER, project=FOREIGN)) == ['public']
    api.refused('GET', f'/types/{type_id}', expect=404, roles=MEMBER, project=FOREIGN)


@pytest.mark.parametrize(
    'query, shown',
    [
        ('', ['public']),
        ('?is_public=true', ['public']),
        ('?is_public=0', ['private']),
        ('?is_public=all', ['private', 'public']),
        ('?is_public=None&all_tenants=1', ['private', 'public']),
    ],
)
def test_administrators_filter_by_is_public(api, query, shown):
    api.create_type('public')
    api.create_type('private', public=False)
    assert names(api.get('/types' + query)) == shown
    assert names(api.get('/types' + query, roles=MEMBER)) == ['public']


def test_is_public_must_be_a_boolean(api):
    assert 'is_public must be' in api.refused('GET', '/types?is_public=x')
    api.get('/types?is_public=x', roles=MEMBER)  # ignored for members


@pytest.mark.facts('add-support-filter-search-for-share-type')
@pytest.mark.parametrize(
    'wanted, shown',
    [
        ("{'thin': 'True'}", ['thin']),
        ("{'thin': True, 'snapshot_support': 'True'}", []),
        ("{'availability_zones': 'a'}", ['anywhere', 'in-a-and-b', 'thin']),
        ("{'availability_zones': 'b, a'}", ['anywhere', 'in-a-and-b', 'thin']),
        ("{'availability_zones': 'a,c'}", ['anywhere', 'thin']),
        ('{}', ['anywhere', 'in-a-and-b', 'thin']),
    ],
)
def test_types_are_filtered_by_extra_specs(api, wanted, shown):
    api.create_type('anywhere')
    api.create_type('thin', {'thin': True})
    api.create_type('in-a-and-b', {'availability_zones': ' a , b '})
    assert names(api.get(f'/types?extra_specs={wanted}', minor=43)) == shown


def test_extra_specs_are_no_filter_in_older_versions(api):
    message = api.refused('GET', "/types?extra_specs={'a': 'b'}", minor=42)
    assert 'extra_specs' in message
    assert '2.43' in message


@pytest.mark.parametrize(
    'text',
    [
        '{',
        '[]',
        'x',
        '1+1',
        "{'a': open('x')}",
        '{[]: 1}',
        '(' * 300,
        '-' * 3000 + '1',
        "{'a': '" + 'b' * 5000 + "'}",
    ],
)
def test_filter_must_be_an_object(api, text):
    assert 'extra_specs must be an object' in api.refused(
        'GET', f'/types?extra_specs={text}'
    )


@pytest.mark.facts('add-is-default')
def test_default_type_has_a_path_and_a_flag(api):
    api.refused('GET', '/types/default', expect=404)
    created = api.create_type('default')
    api.create_type('other')
    assert created['is_default'] is True
    assert share_type_of(api.get('/types/default', roles=MEMBER))['id'] == created['id']
    assert [item['is_default'] for item in api.get('/types')['share_types']] == [
        True,
        False,
    ]


def test_types_are_shown_by_id_only(api):
    api.create_type('fast')
    api.refused('GET', '/types/fast', expect=404)
    api.refused('GET', f'/types/{NO_TYPE}', expect=404)
    api.refused('GET', '/types/' + 'x' * 5000, expect=404)


@pytest.mark.facts('bp-update-share-type.1')
@pytest.mark.parametrize(
    'change, column, shown',
    [
        ({'name': 'new'}, 'name', 'new'),
        ({'name': 'fast'}, 'name', 'fast'),
        ({'description': 'told'}, 'description', 'told'),
        ({'description': ''}, 'description', None),
        ({'description': 'x', 'name': None}, 'description', 'x'),
        ({'share_type_access:is_public': 'no'}, 'share_type_access:is_public', False),
    ],
)
@pytest.mark.parametrize('wrapper', ['share_type', 'volume_type'])
def test_a_type_can_be_changed(api, wrapper, change, column, shown):
    created = api(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'fast',
                'description': 'old',
                'extra_specs': {'driver_handles_share_servers': False},
            }
        },
    )['share_type']
    changed = share_type_of(
        api('PUT', f'/types/{created["id"]}', {wrapper: change}, minor=50)
    )
    # is_default came with 2.46; nothing else differs
    assert changed == created | {column: shown}


@pytest.mark.facts('bp-update-share-type.3', 'share_type_name')
@pytest.mark.parametrize(
    'body, message_part',
    [
        ({}, 'share_type is required'),
        ({'share_type': {}}, 'at least one of name'),
        ({'share_type': {'name': None, 'description': None}}, 'at least one'),
        ({'share_type': {'name': ''}}, 'share_type.name must be'),
        ({'share_type': {'name': '  '}}, 'share_type.name must be'),
        ({'share_type': {'name': 'x' * 256}}, 'share_type.name must be'),
        (
            {'volume_type': {'description': 'x' * 256}},
            'volume_type.description must be',
        ),
        (
            {'share_type': {'share_type_access:is_public': 'perhaps'}},
            'share_type.share_type_access:is_public must be a boolean',
        ),
        ({'share_type': []}, 'share_type must be an object'),
        (b'{', 'Malformed'),
        (None, 'Malformed'),
    ],
)
def test_invalid_change_is_refused_and_changes_nothing(api, body, message_part):
    type_id = api.create_type()['id']
    before = api.all_rows()
    assert message_part in api.refused('PUT', f'/types/{type_id}', body)
    assert api.all_rows() == before


@pytest.mark.facts('share_type_name', 'extra_specs_request_body.1')
@pytest.mark.parametrize(
    'changes, message_part',
    [
        ({'name': None}, 'share_type.name'),
        ({'name': ''}, 'share_type.name'),
        ({'name': 7}, 'share_type.name'),
        ({'name': 'x' * 256}, 'name'),
        ({'name': ' \t'}, 'share_type.name'),
        ({'description': 'x' * 256}, 'share_type.description'),
        ({'share_type_access:is_public': 2}, 'access:is_public must be'),
        (
            {'extra_specs': {}},
            'share_type.extra_specs.driver_handles_share_servers is required',
        ),
        ({'extra_specs': None}, 'share_type.extra_specs must be an object'),
        ({'extra_specs': []}, 'share_type.extra_specs must be an object'),
        (
            {'extra_specs': {'driver_handles_share_servers': 'perhaps'}},
            'extra_specs.driver_handles_share_servers must be a boolean',
        ),
        (
            {
                'extra_specs': {
                    'driver_handles_share_servers': False,
                    'encryption_support': 'share_server',
                }
            },
            'encryption_support share_server needs',
        ),
    ],
)
def test_invalid_type_is_refused_and_not_created(api, changes, message_part):
    before = api.all_rows()
    valid = {'name': 'n', 'extra_specs': {'driver_handles_share_servers': False}}
    assert message_part in api.refused(
        'POST', '/types', {'share_type': valid | changes}
    )
    assert api.all_rows() == before


@pytest.mark.parametrize('missing', ['name', 'extra_specs'])
def test_name_and_extra_specs_are_required(api, missing):
    body = {'name': 'n', 'extra_specs': {'driver_handles_share_servers': False}}
    del body[missing]
    assert f'share_type.{missing} is required' in api.refused(
        'POST', '/types', {'share_type': body}
    )


def test_description_is_refused_in_older_versions(api):
    body = {
        'share_type': {
            'name': 'n',
            'description': 'd',
            'extra_specs': {'driver_handles_share_servers': False},
        }
    }
    assert 'share_type.description' in api.refused('POST', '/types', body, minor=40)
    assert api('POST', '/types', body, minor=41)['share_type']['description'] == 'd'


@pytest.mark.facts('bp-update-share-type.2')
@pytest.mark.facts('share-types.2')
def test_update_changes_no_extra_specs(api):
    type_id = api.create_type('fast', {'color': 'red'})['id']
    path = f'/types/{type_id}'
    before = api.get(path)['share_type']
    body = {'name': 'new', 'extra_specs': {'color': 'blue', 'snapshot_support': True}}
    changed = api('PUT', path, {'share_type': body})['share_type']
    assert changed['extra_specs'] == before['extra_specs']
    assert api.get(path)['share_type'] == before | {'name': 'new'}


def test_names_are_unique(api):
    api.create_type('taken')
    type_id = api.create_type('free')['id']
    before = api.all_rows()
    assert 'taken' in api.refused(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'taken',
                'extra_specs': {'driver_handles_share_servers': True},
            }
        },
        expect=409,
    )
    api.refused(
        'PUT', f'/types/{type_id}', {'share_type': {'name': 'taken'}}, expect=409
    )
    assert api.all_rows() == before


def test_unknown_types_cannot_be_changed_or_deleted(api):
    api.refused('PUT', f'/types/{NO_TYPE}', {'share_type': {'name': 'x'}}, expect=404)
    api.refused('DELETE', f'/types/{NO_TYPE}', expect=404)


@pytest.mark.facts('bp-update-share-type.1')
def test_projects_change_nothing(api):
    type_id = api.create_type()['id']
    before = api.all_rows()
    for method, path, body in (
        (
            'POST',
            '/types',
            {
                'share_type': {
                    'name': 'n',
                    'extra_specs': {'driver_handles_share_servers': True},
                }
            },
        ),
        ('PUT', f'/types/{type_id}', {'share_type': {'name': 'n'}}),
        ('DELETE', f'/types/{type_id}', None),
        ('POST', f'/types/{type_id}/action', {'addProjectAccess': {'project': MINE}}),
        ('POST', f'/types/{type_id}/extra_specs', {'extra_specs': {'a': 'b'}}),
    ):
        api.refused(method, path, body, expect=403, roles=MEMBER)
    assert api.all_rows() == before


def test_statement_count_of_lists_is_constant(api):
    for number in range(5):
        api.create_type(f't{number}', {'a': 'b', 'c': 'd'})
    for roles in (ADMIN, MEMBER):
        for path in ('/types', '/types?is_public=all'):
            with api.record_statements() as sent:
                api.get(path, roles=roles)
            assert len(sent) == 1
    with api.record_statements() as sent:
        api.get('/types?is_public=false')
    assert len(sent) == 1
