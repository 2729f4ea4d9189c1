"""Extra specs of share types."""

import pytest

from tests.functional.api.plain_client import MEMBER

NO_TYPE = '/types/7fa1342b-de9d-4d89-bdc8-af67795c0e52'


@pytest.fixture
def path(api):
    return '/types/{id}/extra_specs'.format(
        **api.create_type(specs={'snapshot_support': True, 'x.y': 'z'})
    )


def test_extra_specs_are_shown_together_and_separately(api, path):
    assert api.get(path) == {
        'extra_specs': {
            'driver_handles_share_servers': 'False',
            'snapshot_support': 'True',
            'x.y': 'z',
        }
    }
    assert api.get(f'{path}/x.y') == {'x.y': 'z'}
    api.refused('GET', f'{path}/missing', expect=404)


@pytest.mark.facts('extra_specs_request_body.2')
def test_setting_some_keeps_the_others(api, path):
    sent = {
        'extra_specs': {'x.y': 'new', 'replication_type': 'dr', 'compression': True}
    }
    assert api('POST', path, sent) == sent
    assert api.get(path)['extra_specs'] == {
        'driver_handles_share_servers': 'False',
        'snapshot_support': 'True',
        'x.y': 'new',
        'replication_type': 'dr',
        'compression': 'True',
    }


def test_setting_none_changes_nothing(api, path):
    before = api.all_rows()
    assert api('POST', path, {'extra_specs': {}}) == {'extra_specs': {}}
    assert api.all_rows() == before


def test_single_extra_spec_is_set(api, path):
    assert api('PUT', f'{path}/new', {'new': 'v'}) == {'new': 'v'}
    assert api('PUT', f'{path}/x.y', {'x.y': False}) == {'x.y': False}
    assert api.get(path)['extra_specs'] == {
        'driver_handles_share_servers': 'False',
        'snapshot_support': 'True',
        'x.y': 'False',
        'new': 'v',
    }


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'other': 'v'},
        {'x.y': 'v', 'other': 'v'},
        {'x.y': None},
        {'x.y': {}},
        {'x.y': ''},
        [],
        None,
    ],
)
def test_body_must_have_the_key_of_the_path(api, path, body):
    before = api.all_rows()
    api.refused('PUT', f'{path}/x.y', body)
    assert api.all_rows() == before


def test_extra_spec_is_deleted(api, path):
    assert api('DELETE', f'{path}/x.y', expect=202) is None
    api.refused('DELETE', f'{path}/x.y', expect=404)
    assert 'x.y' not in api.get(path)['extra_specs']


@pytest.mark.facts('required_extra_specs')
@pytest.mark.parametrize(
    'key, minor, code',
    [
        ('driver_handles_share_servers', 0, 403),
        ('driver_handles_share_servers', 99, 403),
        ('snapshot_support', 23, 403),
        ('snapshot_support', 24, 202),
    ],
)
def test_required_extra_specs_cannot_be_deleted(api, path, key, minor, code):
    api('DELETE', f'{path}/{key}', expect=code, minor=minor)
    assert (key in api.get(path)['extra_specs']) == (code == 403)


@pytest.mark.facts('replication_type', 'snapshot_support')
@pytest.mark.parametrize(
    'key, value',
    [
        ('k y', 'v'),
        ('k/y', 'v'),
        ('', 'v'),
        ('k' * 256, 'v'),
        ('k', ''),
        ('k', 'v' * 256),
        ('k', None),
        ('k', ['v']),
        ('k', {'v': 1}),
        ('snapshot_support', 'perhaps'),
        ('snapshot_support', '<in> True'),
        ('replication_type', 'sometimes'),
        ('encryption_support', 'yes'),
        ('encryption_support', 'share_server'),
        ('availability_zones', 'a,,b'),
        ('availability_zones', 'a, '),
        ('provisioning:max_share_size', 'large'),
        ('provisioning:min_share_size', '0'),
        ('provisioning:max_share_extend_size', '1.5'),
        ('provisioning:max_share_extend_size', 1.5),
        ('replication_type', 5),
        ('provisioning:mount_point_prefix', 'a/b'),
        ('driver_handles_share_servers', 'perhaps'),
    ],
)
def test_invalid_extra_spec_is_refused_and_changes_nothing(api, path, key, value):
    before = api.all_rows()
    message = api.refused('POST', path, {'extra_specs': {'good': 'v', key: value}})
    assert key[:40] in message
    assert api.all_rows() == before


@pytest.mark.facts('snapshot_support')
@pytest.mark.parametrize(
    'key, value, stored',
    [
        ('k' * 255, 'v' * 255, 'v' * 255),
        ('a:b-c.d_e', '<or> a <or> b', ...),
        ('snapshot_support', '<is> True', ...),
        ('snapshot_support', 'yes', ...),
        ('availability_zones', ' a b , c', 'a b,c'),
        ('provisioning:max_share_size', '100', ...),
        ('provisioning:mount_point_prefix', '{project_id}-x_', ...),
        ('provisioning:mount_point_prefix', '', ...),
        ('encryption_support', 'share', ...),
        ('umlaut_ä', 'ö', ...),
        ('k', 5, '5'),
        ('k', -2.5, '-2.5'),
        ('k', True, 'True'),
        ('provisioning:max_share_size', 5, '5'),
    ],
)
def test_valid_extra_spec_is_stored(api, path, key, value, stored):
    api('POST', path, {'extra_specs': {key: value}})
    assert api.get(path)['extra_specs'][key] == (value if stored is ... else stored)


def test_encryption_of_servers_requires_server_mode(api, path):
    api(
        'POST',
        path,
        {
            'extra_specs': {
                'driver_handles_share_servers': True,
                'encryption_support': 'share_server',
            }
        },
    )
    before = api.all_rows()
    api.refused(
        'PUT',
        f'{path}/driver_handles_share_servers',
        {'driver_handles_share_servers': False},
    )
    assert api.all_rows() == before


@pytest.mark.parametrize(
    'body', [None, {}, {'extra_specs': None}, {'extra_specs': []}, b'[', b'\xff']
)
def test_the_wrapper_is_required(api, path, body):
    before = api.all_rows()
    api.refused('POST', path, body)
    assert api.all_rows() == before


def test_unknown_types_have_none(api):
    specs = f'{NO_TYPE}/extra_specs'
    api.refused('GET', specs, expect=404)
    api.refused('GET', f'{specs}/k', expect=404)
    api.refused('POST', specs, {'extra_specs': {'k': 'v'}}, expect=404)
    api.refused('PUT', f'{specs}/k', {'k': 'v'}, expect=404)
    api.refused('DELETE', f'{specs}/k', expect=404)


def test_projects_see_none(api, path):
    for method, url, body in (
        ('GET', path, None),
        ('GET', f'{path}/x.y', None),
        ('POST', path, {'extra_specs': {'k': 'v'}}),
        ('PUT', f'{path}/x.y', {'x.y': 'v'}),
        ('DELETE', f'{path}/x.y', None),
    ):
        api.refused(method, url, body, expect=403, roles=MEMBER)
