"""Extra specs as a resource below their type."""

import pytest

from tests.functional.api.plain.client import MEMBER

NO_TYPE = '/types/7fa1342b-de9d-4d89-bdc8-af67795c0e52'


@pytest.fixture
def path(api):
    return '/types/{id}/extra_specs'.format(
        **api.create_type(specs={'snapshot_support': True, 'x.y': 'z'})
    )


def test_all_and_each_are_shown(api, path):
    assert api.get(path) == {
        'extra_specs': {
            'driver_handles_share_servers': 'False',
            'snapshot_support': 'True',
            'x.y': 'z',
        }
    }
    assert api.get(f'{path}/x.y') == {'x.y': 'z'}
    api.refused('GET', f'{path}/missing', expect=404)


def test_setting_some_keeps_the_others(api, path):
    sent = {
        'extra_specs': {
            'x.y': 'new',
            'replication_type': 'dr',
            'compression': True,
        }
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


def test_one_is_set_by_its_url(api, path):
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
        {'x.y': 7},
        [],
        None,
    ],
)
def test_a_body_that_is_not_that_one_is_refused(api, path, body):
    before = api.all_rows()
    api.refused('PUT', f'{path}/x.y', body)
    assert api.all_rows() == before


def test_one_is_removed(api, path):
    assert api('DELETE', f'{path}/x.y', expect=202) is None
    api.refused('DELETE', f'{path}/x.y', expect=404)
    assert 'x.y' not in api.get(path)['extra_specs']


@pytest.mark.parametrize(
    'key, minor, code',
    [
        ('driver_handles_share_servers', 0, 403),
        ('driver_handles_share_servers', 99, 403),
        ('snapshot_support', 23, 403),
        ('snapshot_support', 24, 202),
    ],
)
def test_required_ones_stay(api, path, key, minor, code):
    api('DELETE', f'{path}/{key}', expect=code, minor=minor)
    assert (key in api.get(path)['extra_specs']) == (code == 403)


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
        ('k', 5),
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
        ('provisioning:mount_point_prefix', 'a/b'),
        ('driver_handles_share_servers', 'perhaps'),
    ],
)
def test_a_bad_extra_spec_is_refused_and_changes_nothing(
    api, path, key, value
):
    before = api.all_rows()
    message = api.refused(
        'POST', path, {'extra_specs': {'good': 'v', key: value}}
    )
    assert key[:40] in message
    assert api.all_rows() == before


@pytest.mark.parametrize(
    'key, value, kept',
    [
        ('k' * 255, 'v' * 255, 'v' * 255),
        ('a:b-c.d_e', '<or> a <or> b', ...),
        ('snapshot_support', '<is> True', ...),
        ('snapshot_support', 'yes', ...),
        ('availability_zones', ' a b , c', 'a b,c'),
        ('provisioning:max_share_size', '100', ...),
        ('provisioning:mount_point_prefix', '{project_id}-x_', ...),
        ('encryption_support', 'share', ...),
        ('umlaut_ä', 'ö', ...),
    ],
)
def test_a_good_extra_spec_is_kept(api, path, key, value, kept):
    api('POST', path, {'extra_specs': {key: value}})
    assert api.get(path)['extra_specs'][key] == (
        value if kept is ... else kept
    )


def test_encryption_of_servers_needs_server_mode_in_the_end(api, path):
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
    'body',
    [None, {}, {'extra_specs': None}, {'extra_specs': []}, b'[', b'\xff'],
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
