"""What two requests show of one thing is the same, for every role.

Each row of `PARTS` is a field of a resource that a request of its own shows
as well, each row of `LISTS` a list whose items are shown one by one as well.
Who sees the one sees the other, unless the published policy says otherwise.
"""

from collections.abc import Callable
import typing

import pytest

from tests.functional.api.samples.requests import PERSONAS
from tests.support.share_backups import EXPERIMENTAL

ADMINS = frozenset({'admin'})
MEMBERS = frozenset({'admin', 'member'})
EVERYONE = frozenset(PERSONAS)


class Part(typing.NamedTuple):
    """A field of a resource, and the request for the same thing.

    `field` and `answer` return it from the two answers. `readers` are those
    whom the published policy of the request allows, if all see the resource.
    """

    name: str
    resource: Callable[..., str]
    field: Callable[[dict], object]
    path: str
    answer: Callable[[dict], object]
    readers: frozenset[str] = EVERYONE
    version: str = '2.99'


def _key(name: str) -> Callable[[dict], object]:
    return lambda shown: shown[name]


def _paths(answer: dict) -> list[str]:
    return [one['path'] for one in answer['export_locations']]


def _share(sample: typing.Any) -> str:
    return f'/shares/{sample.share}'


def _instance(sample: typing.Any) -> str:
    return f'/share_instances/{sample.instance_of(sample.share)}'


def _export(sample: typing.Any) -> str:
    return f'{_share(sample)}/export_locations/' + sample.export_of(sample.share)


PARTS = [
    Part(
        'metadata of a share', _share, _key('metadata'), '/metadata', _key('metadata')
    ),
    Part(
        'key of a share',
        _share,
        lambda share: {'color': share['metadata']['color']},
        '/metadata/color',
        _key('meta'),
    ),
    Part(
        'export locations of a share',
        _share,
        _key('export_locations'),
        '/export_locations',
        _paths,
        version='2.8',
    ),
    Part(
        'metadata of an export location',
        _export,
        _key('metadata'),
        '/metadata',
        lambda answer: {
            key: value
            for key, value in answer['metadata'].items()
            if key != 'preferred'  # a field of its own
        },
    ),
    Part(
        'export locations of an instance',
        _instance,
        _key('export_locations'),
        '/export_locations',
        _paths,
        version='2.8',
    ),
    Part(
        'metadata of a snapshot',
        lambda sample: f'/snapshots/{sample.snapshot}',
        _key('metadata'),
        '/metadata',
        _key('metadata'),
    ),
    Part(
        'metadata of a replica',
        lambda sample: f'/share-replicas/{sample.replica}',
        _key('metadata'),
        '/metadata',
        _key('metadata'),
        MEMBERS,
    ),
    Part(
        'subnets of a share network',
        lambda sample: f'/share-networks/{sample.network}',
        lambda network: [one['id'] for one in network['share_network_subnets']],
        '/subnets',
        lambda answer: [one['id'] for one in answer['share_network_subnets']],
    ),
    Part(
        'metadata of a subnet',
        lambda sample: f'/share-networks/{sample.network}/subnets/{sample.subnet}',
        _key('metadata'),
        '/metadata',
        _key('metadata'),
    ),
    Part(
        'members of a snapshot of a group',
        lambda sample: f'/share-group-snapshots/{sample.group_snapshot}',
        lambda snapshot: [one['id'] for one in snapshot['members']],
        '/members',
        lambda answer: [one['id'] for one in answer['share_group_snapshot_members']],
    ),
    Part(
        'details of a share server',
        lambda sample: f'/share-servers/{sample.server}',
        _key('backend_details'),
        '/details',
        _key('details'),
    ),
    Part(
        'extra specs of a share type',
        lambda sample: f'/types/{sample.private_type}',
        _key('extra_specs'),
        '/extra_specs',
        _key('extra_specs'),
        ADMINS,
    ),
    Part(
        'specs of a group type',
        lambda sample: f'/share-group-types/{sample.private_group_type}',
        _key('group_specs'),
        '/group-specs',
        _key('group_specs'),
        ADMINS,
    ),
    Part(
        'specs of a QoS type',
        lambda sample: f'/qos-types/{sample.qos_type}',
        _key('specs'),
        '/specs',
        _key('specs'),
        ADMINS,
    ),
]


def make_public(sample):
    for share in (sample.share, sample.spare_share):
        sample.admin.request(
            'PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200
        )


def inside(answer):
    """Return the resource in an answer; share types have two names for it."""
    return next(iter(answer.values()))


@pytest.mark.parametrize('public', [False, True], ids=['private', 'public'])
@pytest.mark.parametrize('persona', PERSONAS)
@pytest.mark.parametrize('part', PARTS, ids=lambda part: part.name)
def test_part_is_what_the_resource_shows(sample, part, persona, public):
    if public:
        make_public(sample)
    path, api = part.resource(sample), sample.apis[persona]
    shown = api.request('GET', path, version=part.version, **EXPERIMENTAL)
    answer = api.request('GET', path + part.path, **EXPERIMENTAL)
    if shown.status_int != 200 or persona not in part.readers:
        assert answer.status_int in (403, 404)
        return
    if persona == 'guest':
        # Without a role, only the share itself is shown.
        assert public
        assert answer.status_int == 403
        return
    assert answer.status_int == 200
    assert part.answer(answer.json) == part.field(inside(shown.json))


def test_each_part_is_seen_by_someone(sample):
    for part in PARTS:
        sample.admin.get(part.resource(sample), version=part.version, **EXPERIMENTAL)


@pytest.mark.parametrize('path', [_share, _export])
def test_parts_of_public_shares_are_changed_by_their_owners(sample, path):
    make_public(sample)
    for method, rest, body in (
        ('POST', '', {'metadata': {'color': 'blue'}}),
        ('PUT', '', {'metadata': {}}),
        ('POST', '/color', {'metadata': {'color': 'blue'}}),
        ('DELETE', '/color', None),
    ):
        sample.apis['foreign'].request(
            method, f'{path(sample)}/metadata{rest}', body, expect=403
        )
    shown = sample.member.show(sample.share)
    assert shown['metadata'] == {'color': 'red'}


LISTS = {
    'shares': '/shares/detail',
    'snapshots': '/snapshots/detail',
    'share_instances': '/share_instances',
    'snapshot_instances': '/snapshot-instances/detail',
    'share_replicas': '/share-replicas/detail',
    'share_networks': '/share-networks/detail',
    'security_services': '/security-services/detail',
    'share_servers': '/share-servers',
    'share_groups': '/share-groups/detail',
    'share_group_snapshots': '/share-group-snapshots/detail',
    'share_backups': '/share-backups/detail',
    'transfers': '/share-transfers/detail',
    'resource_locks': '/resource-locks',
    'messages': '/messages',
    'share_types': '/types',
    'share_group_types': '/share-group-types',
    'qos_types': '/qos-types',
}
_QUERY = '?all_tenants=1&is_public=true'
_TYPES = '?is_public=all'


@pytest.mark.parametrize('persona', PERSONAS)
@pytest.mark.parametrize('key', LISTS)
def test_item_of_a_list_is_what_is_shown_of_it(sample, key, persona):
    make_public(sample)
    api, path = sample.apis[persona], LISTS[key]
    query = _TYPES if key.endswith('_types') else _QUERY
    answer = api.request('GET', path + query, **EXPERIMENTAL)
    if answer.status_int != 200:
        assert (answer.status_int, persona) != (403, 'admin')
        return
    for item in answer.json[key]:
        one = path.removesuffix('/detail') + f'/{item["id"]}'
        shown = inside(api.get(one, **EXPERIMENTAL))
        common = shown.keys() & item.keys()
        assert {name: shown[name] for name in common} == {
            name: item[name] for name in common
        }, one
