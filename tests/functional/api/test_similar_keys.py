"""Keys and names that look alike, on every database.

MariaDB ignores spaces at the end when it compares; other collations ignore
case, accents, width or characters that have no width.
"""

import urllib.parse

import pytest

from manila_lite.api import routes
from tests.functional.api.snapshot_client import create_available_snapshot
from tests.support import sampling
from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared

pytestmark = sampling.dialects

SLASHES = ('csi.storage.k8s.io/pvc/name', 'a//b', '/a', 'a/', 'x/metadata/y')
DISTINCT = ('key', 'Key', 'k\u00e9y', 'ke\u0301y', 'k\u200bey', '\uff4bey')
PADDED = ('key ', ' key', 'key\t', 'key\u00a0', 'key\u3000')


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(url=database_url)


@pytest.fixture
@prepared
def resources(cloud, admin):
    """Return a path of every resource with metadata except replicas.

    These need back ends that replicate; a test compares the routes.
    """
    share = admin.create()['id']
    cloud.settle()
    snapshot = create_available_snapshot(cloud, admin, share)
    rule = admin.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.2', 'access_level': 'rw'},
        expect=200,
    ).json['access']['id']
    locations = admin.get(f'/shares/{share}/export_locations')
    network = admin.request(
        'POST', '/share-networks', {'share_network': {}}, expect=200
    ).json['share_network']
    (subnet,) = network['share_network_subnets']
    return (
        f'/shares/{share}',
        f'/shares/{share}/export_locations/' + locations['export_locations'][0]['id'],
        f'/share-access-rules/{rule}',
        f'/snapshots/{snapshot}',
        f'/share-networks/{network["id"]}/subnets/{subnet["id"]}',
    )


def is_served(admin, method, url):
    """Tell whether there is such a route; rules lack some of them."""
    return admin.request(method, url).status_int != 405


def test_metadata_keys_differ_in_every_character(admin, resources):
    keys = DISTINCT + SLASHES
    expected = {key: f'value of {key}' for key in keys}
    for path in resources:
        url = f'{path}/metadata'
        found = admin.request('PUT', url, {'metadata': expected}, expect=200).json[
            'metadata'
        ]
        assert expected.items() <= found.items()
        for number, key in enumerate(keys):
            safe = '/' if number % 2 else ''
            of_key = f'{url}/{urllib.parse.quote(key, safe)}'
            if is_served(admin, 'GET', of_key):
                assert admin.get(of_key) == {'meta': {key: expected[key]}}
            answer = admin.request('DELETE', of_key)
            assert answer.status_int == 200, answer.text
            admin.request('DELETE', of_key, expect=404)


def test_metadata_key_has_no_space_at_its_ends(admin, resources):
    for path in resources:
        url = f'{path}/metadata'
        admin.request('PUT', url, {'metadata': {'key': '1'}}, expect=200)
        for padded in PADDED:
            for method in ('PUT', 'POST'):
                body = {'metadata': {padded: '2', 'key': '3'}}
                answer = admin.request(method, url, body)
                assert answer.status_int in (400, 405), (method, url)
            of_padded = f'{url}/{urllib.parse.quote(padded)}'
            admin.request('DELETE', of_padded, expect=404)
        kept_url = f'{url}/key'
        if is_served(admin, 'GET', kept_url):
            assert admin.get(kept_url) == {'meta': {'key': '1'}}
        admin.request('DELETE', kept_url, expect=200)


def test_resources_are_all_that_have_metadata(resources):
    of_replicas = '/share-replicas/{share_replica_id}/metadata'
    paths = {route.path for route in routes.ROUTES if route.path.endswith('/metadata')}
    assert len(paths - {of_replicas}) == len(resources)


def _share_type(name):
    specs = {'driver_handles_share_servers': 'False'}
    return '/types', {'share_type': {'name': name, 'extra_specs': specs}}


def _group_type(name):
    return '/share-group-types', {
        'share_group_type': {'name': name, 'share_types': [TYPE_ID]}
    }


def _qos_type(name):
    return '/qos-types', {'qos_type': {'name': name}}


@pytest.mark.parametrize('kind', [_share_type, _group_type, _qos_type])
def test_names_of_types_differ_in_every_character(admin, kind):
    for name in DISTINCT:
        answer = admin.request('POST', *kind(name))
        assert answer.status_int < 300, (name, answer.text)
    for name in DISTINCT:
        admin.request('POST', *kind(name), expect=409)
    for name in PADDED:
        admin.request('POST', *kind(name), expect=400)


def test_share_type_is_found_by_its_exact_name(admin):
    for name in DISTINCT:
        admin.request('POST', *_share_type(name), expect=200)
        share = admin.create(share_type=name)
        assert share['share_type_name'] == name
    for name in PADDED:
        admin.create(share_type=name, expect=400)
        admin.request(
            'GET',
            '/quota-sets/project?share_type=' + urllib.parse.quote(name),
            expect=404,
        )


@pytest.mark.parametrize(
    'path, key, code',
    [
        ('/quota-sets/{}', 'quota_set', 404),
        ('/quota-sets/project?user_id={}', 'quota_set', 400),
        ('/quota-class-sets/{}', 'quota_class_set', 404),
    ],
)
def test_quotas_are_those_of_the_exact_id(admin, path, key, code):
    urls = [path.format(urllib.parse.quote(id)) for id in DISTINCT]
    for number, url in enumerate(urls):
        admin.request('PUT', url, {key: {'shares': number}}, expect=200)
    for number, url in enumerate(urls):
        assert admin.get(url)[key]['shares'] == number
    for id in PADDED:
        url = path.format(urllib.parse.quote(id))
        for method, body in (('GET', None), ('PUT', {key: {'shares': 40}})):
            admin.request(method, url, body, expect=code)
    assert admin.get(urls[0])[key]['shares'] == 0


def test_ids_are_found_exactly(admin, resources):
    path = resources[0]
    share = path.rpartition('/')[2]
    admin.get(f'{path}%20', expect=404)
    snapshot = {'snapshot': {'share_id': f'{share} '}}
    admin.request('POST', '/snapshots', snapshot, expect=400)
