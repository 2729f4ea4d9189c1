"""QoS types: their life, their specs, and what uses them."""

from concurrent import futures
import functools
import urllib.parse

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.types import qos_types, types as share_types
from tests.functional.api import differences
from tests.functional.api.plain_client import FOREIGN, MEMBER, READER
from tests.support import sampling
from tests.support.concurrent_calls import at_once
from tests.support.rows import INSTANCE, delete_share, insert_instance, insert_share

PATH = '/qos-types'
NO_TYPE = '7fa1342b-de9d-4d89-bdc8-af67795c0e52'


def create(api, name='gold', **values):
    return api('POST', PATH, {'qos_type': {'name': name, **values}})['qos_type']


def listed(api, query='', **options):
    """Return the names on the page that the query asks for."""
    found = api.get(PATH + query, **options)['qos_types']
    return [each['name'] for each in found]


def use_by_default(api, wanted, name='fast'):
    """Create a share type that names a QoS type; return its id."""
    return api.create_type(name, {'default_qos_type': wanted})['id']


def insert_share_of(session, share_type_id):
    """Insert a share as a request for one of the type does."""
    share_type = share_types.find_usable(session, share_type_id, None, True)
    qos_type_id = qos_types.lock_default(session, share_type)
    share_id = insert_share(session)
    insert_instance(session, share_id, qos_type_id=qos_type_id)
    return share_id


# Types


@pytest.mark.facts('blueprint-qos-types.1')
def test_type_shows_the_values_it_was_created_with(api):
    created = create(api, description='fast', specs={'policy_type': 'adaptive'})
    assert created == {
        'id': created['id'],
        'name': 'gold',
        'description': 'fast',
        'specs': {'policy_type': 'adaptive'},
        'created_at': created['created_at'],
        'updated_at': None,
    }
    path = f'{PATH}/{created["id"]}'
    for roles in (MEMBER, READER):
        assert api.get(path, roles=roles, project=FOREIGN) == {'qos_type': created}
        assert api.get(PATH, roles=roles, project=FOREIGN) == {'qos_types': [created]}


def test_description_and_specs_are_optional(api):
    created = create(api)
    assert (created['description'], created['specs']) == (None, {})


@differences.proves('numbers as specs of QoS types')
def test_numbers_of_the_published_example_are_texts(api):
    specs = {'policy_type': 'adaptive', 'peak_iops': 5000, 'expected_iops': 2000}
    assert create(api, specs=specs)['specs'] == {
        'policy_type': 'adaptive',
        'peak_iops': '5000',
        'expected_iops': '2000',
    }


@pytest.mark.facts('blueprint-qos-types.1')
def test_a_deleted_type_is_gone_with_its_specs(api_on_every_database):
    api = api_on_every_database
    before = api.all_rows()
    path = f'{PATH}/{create(api, specs={"a": "1"})["id"]}'
    assert api('DELETE', path, expect=204) is None
    assert api.all_rows() == before
    api.refused('GET', path, expect=404)
    api.refused('DELETE', path, expect=404)
    create(api)


@pytest.mark.facts('blueprint-qos-types.1')
@pytest.mark.parametrize('value', [None, ''])
def test_only_the_description_can_be_changed(api, value):
    created = create(api, specs={'a': '1'})
    path = f'{PATH}/{created["id"]}'
    body = {'qos_type': {'description': 'new', 'name': 'other', 'specs': {}}}
    changed = api('PUT', path, body)['qos_type']
    assert changed['updated_at'] is not None
    assert changed == created | {
        'description': 'new',
        'updated_at': changed['updated_at'],
    }
    assert api('PUT', path, {'qos_type': {}})['qos_type'] == changed
    body = {'qos_type': {'description': value}}
    assert api('PUT', path, body)['qos_type']['description'] is None


@pytest.mark.parametrize(
    'values, text',
    [
        ({'name': ' '}, 'name'),
        ({'name': ''}, 'name'),
        ({'name': None}, 'name'),
        ({'name': 7}, 'name'),
        ({'name': 'x' * 256}, 'name'),
        ({'description': 'x' * 256}, 'description'),
        ({'description': 7}, 'description'),
        ({'specs': None}, 'specs'),
        ({'specs': ['x']}, 'specs'),
        ({'specs': {'a b': 'x'}}, 'a b'),
        ({'specs': {'x' * 256: 'x'}}, 'specs'),
        ({'specs': {'a': ''}}, 'specs.a'),
        ({'specs': {'a': None}}, 'specs.a'),
        ({'specs': {'a': {}}}, 'specs.a'),
        ({'specs': {'a': 'x' * 256}}, 'specs.a'),
    ],
)
def test_invalid_values_are_refused(api, values, text):
    body = {'qos_type': {'name': 'gold'} | values}
    before = api.all_rows()
    assert text in api.refused('POST', PATH, body)
    assert api.all_rows() == before


def test_body_without_name_or_wrapper_is_refused(api):
    assert 'name is required' in api.refused('POST', PATH, {'qos_type': {}})
    path = f'{PATH}/{create(api)["id"]}'
    for method, url in (('POST', PATH), ('PUT', path)):
        message = api.refused(method, url, {'name': 'x'}, expect=422)
        assert 'qos_type' in message


@sampling.dialects
def test_one_of_several_requests_gets_the_name(api_on_every_database):
    api = api_on_every_database
    body = {'qos_type': {'name': 'gold', 'specs': {'a': '1'}}}
    answers = at_once(*[lambda: api.send('POST', PATH, body)] * 4)
    assert sorted(answer.status_int for answer in answers) == [200, 409, 409, 409]
    assert listed(api) == ['gold']
    message = api.refused('POST', PATH, body, expect=409)
    assert 'QoS type gold already exists' in message


# Specs


@pytest.mark.facts('blueprint-qos-types.1')
def test_specs_are_set_changed_and_deleted(api_on_every_database):
    api = api_on_every_database
    path = f'{PATH}/{create(api, specs={"a": "1"})["id"]}/specs'
    sent = {'specs': {'b': 'x', 'c': True, 'd': 300}}
    assert api('POST', path, sent) == sent
    assert api.get(path) == {'specs': {'a': '1', 'b': 'x', 'c': 'True', 'd': '300'}}
    assert api('PUT', f'{path}/a', {'a': '2'}) == {'a': '2'}
    assert api.get(f'{path}/a') == {'a': '2'}
    assert api('DELETE', f'{path}/b', expect=204) is None
    assert api.get(path) == {'specs': {'a': '2', 'c': 'True', 'd': '300'}}
    api.refused('DELETE', f'{path}/b', expect=404)
    api.refused('GET', f'{path}/b', expect=404)


@sampling.dialects
def test_concurrently_set_specs_are_all_stored(api_on_every_database):
    api = api_on_every_database
    path = f'{PATH}/{create(api)["id"]}/specs'
    at_once(
        *[
            functools.partial(
                api, 'POST', path, {'specs': {'same': 'v', f'k{number}': 'v'}}
            )
            for number in range(4)
        ]
    )
    assert set(api.get(path)['specs']) == {'same', 'k0', 'k1', 'k2', 'k3'}


def test_body_for_one_spec_has_exactly_its_key(api):
    path = f'{PATH}/{create(api)["id"]}/specs/a'
    for body in ({'b': 'x'}, {'a': 'x', 'b': 'x'}, {}):
        assert 'a and nothing else' in api.refused('PUT', path, body)


def test_specs_of_unknown_types_are_not_found(api):
    path = f'{PATH}/{NO_TYPE}/specs'
    api.refused('GET', path, expect=404)
    api.refused('POST', path, {'specs': {'a': 'x'}}, expect=404)
    api.refused('PUT', f'{path}/a', {'a': 'x'}, expect=404)
    api.refused('DELETE', f'{path}/a', expect=404)


# Lists


@pytest.mark.parametrize(
    'query, names',
    [
        ({}, ['slow', 'fast_2', 'fast']),
        ({'name': 'fast'}, ['fast']),
        ({'name': 'FAST'}, []),
        ({'name~': 'fas'}, ['fast_2', 'fast']),
        ({'name~': '_'}, ['fast_2']),
        ({'description': 'for mail'}, ['slow']),
        ({'description~': 'for'}, ['slow', 'fast']),
        ({'name~': 'fas', 'description~': 'for'}, ['fast']),
        ({'sort_key': 'name', 'sort_dir': 'asc'}, ['fast', 'fast_2', 'slow']),
        ({'sort_dir': 'asc'}, ['fast', 'fast_2', 'slow']),
        ({'limit': 2, 'offset': 1}, ['fast_2', 'fast']),
        ({'limit': 1}, ['slow']),
        ({'color': 'red'}, ['slow', 'fast_2', 'fast']),
    ],
)
def test_list_is_filtered_sorted_and_cut(api, clock, query, names):
    for name, description in (
        ('fast', 'for builds'),
        ('fast_2', None),
        ('slow', 'for mail'),
    ):
        create(api, name, description=description)
        clock.now += 1
    assert listed(api, '?' + urllib.parse.urlencode(query)) == names


@pytest.mark.parametrize(
    'query', ['limit=x', 'offset=-1', 'sort_key=specs', 'sort_dir=up']
)
def test_invalid_query_is_refused(api, query):
    assert query.partition('=')[0] in api.refused('GET', f'{PATH}?{query}')


@differences.proves('lists of QoS types')
def test_full_page_has_a_link_to_the_next_one(api):
    for number in range(3):
        create(api, f'qos-{number}')
    page = api.get(f'{PATH}?limit=2')
    (link,) = page['qos_types_links']
    query = urllib.parse.urlsplit(link['href']).query
    rest = api.get(f'{PATH}?{query}')
    assert [*page['qos_types'], *rest['qos_types']] == (api.get(PATH)['qos_types'])
    assert 'qos_types_links' not in rest


def test_list_takes_the_same_statements_whatever_its_length(api):
    counts = set()
    for number in range(3):
        create(api, f'qos-{number}', specs={'a': 'x', 'b': 'x'})
        with api.record_statements() as sent:
            assert len(listed(api)) == number + 1
        counts.add(len(sent))
    assert counts == {2}


# What uses them


@pytest.mark.facts('blueprint-qos-types.2')
@pytest.mark.parametrize('key', ['id', 'name'])
def test_type_that_a_share_type_names_is_in_use(api_on_every_database, key):
    api = api_on_every_database
    created = create(api)
    share_type = use_by_default(api, created[key])
    path = f'{PATH}/{created["id"]}'
    assert 'in use by share type fast' in api.refused('DELETE', path)
    spec = f'/types/{share_type}/extra_specs/default_qos_type'
    api('DELETE', spec, expect=202)
    api('DELETE', path, expect=204)


@pytest.mark.facts('blueprint-qos-types.2')
def test_type_of_a_share_is_in_use(api_on_every_database):
    api = api_on_every_database
    path = f'{PATH}/{create(api)["id"]}'
    share_type = use_by_default(api, 'gold')
    share = api.db.write(insert_share_of, share_type)
    api('DELETE', f'/types/{share_type}', expect=202)
    assert f'in use by share {share}' in api.refused('DELETE', path)
    api.db.write(delete_share, share)
    api('DELETE', path, expect=204)


def test_id_comes_before_the_name_of_another(api):
    first = create(api)['id']
    create(api, first)
    share_type = use_by_default(api, first)
    api.db.write(insert_share_of, share_type)
    assert api.db.read(qos_type_of_shares) == [first]


def qos_type_of_shares(session):
    return [row.qos_type_id for row in session.rows(sa.select(INSTANCE.c.qos_type_id))]


@pytest.fixture
def unnamed(api_on_every_database):
    """A QoS type and a share type that named it a moment ago."""
    api = api_on_every_database
    path = f'{PATH}/{create(api)["id"]}'
    share_type = use_by_default(api, 'gold')
    found = api.db.read(
        share_types.find_usable, share_type, project_id=None, sees_all=True
    )
    spec = f'/types/{share_type}/extra_specs/default_qos_type'
    api('DELETE', spec, expect=202)
    return api, path, found


def insert_with(session, share_type, meanwhile=lambda: None):
    share = insert_share(session)
    qos_type_id = qos_types.lock_default(session, share_type)
    meanwhile()
    insert_instance(session, share, qos_type_id=qos_type_id)


@sampling.dialects
@pytest.mark.parametrize('attempt', range(5))
def test_either_the_deletion_or_the_new_share_wins(unnamed, attempt):
    api, path, share_type = unnamed

    def write():
        try:
            api.db.write(insert_with, share_type)
        except exception.InvalidExtraSpec:
            return False
        return True

    written, deletion = at_once(write, lambda: api.send('DELETE', path))
    assert deletion.status_int == (400 if written else 204)
    assert len(listed(api)) == len(api.db.read(qos_type_of_shares)) == written


@sampling.dialects
def test_deletion_waits_for_a_share_that_is_being_accepted(unnamed):
    api, path, share_type = unnamed
    with futures.ThreadPoolExecutor(1) as pool:
        deletions = []

        def delete():
            deletions.append(pool.submit(api.send, 'DELETE', path))
            assert not futures.wait(deletions, timeout=0.5).done

        api.db.write(insert_with, share_type, delete)
    (deletion,) = deletions
    assert deletion.result().status_int == 400
