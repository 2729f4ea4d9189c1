"""Where each published view is seen: a request, and what it shows."""

from collections.abc import Callable
import typing

from tests.functional.api import published_api as published
from tests.functional.api.sample_cloud import SERVICE
from tests.functional.api.sample_cloud import TENANT
from tests.functional.api.sample_cloud import World
from tests.support.cloud import TYPE_ID
from tests.support.cloud import Api

Items = list[dict[str, typing.Any]]
Look = Callable[[World, Api, int], Items]
Path = Callable[[World], str]

EVERYBODY = ('admin', 'member')
ADMINS = ('admin',)

_BELOW_7 = {
    '/services': '/os-services',
    '/quota-sets': '/os-quota-sets',
    '/quota-class-sets': '/os-quota-class-sets',
    '/availability-zones': '/os-availability-zone',
}


class View(typing.NamedTuple):
    """A view of response-fields.csv in one place where it is seen.

    `look` gives the items shown to the caller at a version; `who` may see
    them, `since` the first version. In this place a published type may
    stand for another one, as `types` tells.
    """

    place: str
    resource: str
    parts: tuple[str, ...]
    look: Look
    who: tuple[str, ...]
    since: int
    types: dict[str, str]


VIEWS: list[View] = []


def seen(
    place: str,
    resource: str,
    *parts: str,
    who: tuple[str, ...] = EVERYBODY,
    since: int = 0,
    types: dict[str, str] | None = None,
) -> Callable[[Look], Look]:
    def keep(look: Look) -> Look:
        VIEWS.append(
            View(place, resource, parts, look, who, since, types or {})
        )
        return look

    return keep


def in_get(
    place: str,
    key: str,
    path: str | Path,
    resource: str,
    *parts: str,
    **more: typing.Any,
) -> None:
    """A view that a GET shows below a key, one item or a list of them."""

    @seen(place, resource, *parts, **more)
    def look(world, api, minor):
        found = _get(world, api, minor, path)[key]
        return found if isinstance(found, list) else [found]


def around(
    place: str,
    path: str | Path,
    resource: str,
    *parts: str,
    **more: typing.Any,
) -> None:
    """The keys around what a GET shows."""

    @seen(place, resource, *parts, **more)
    def look(world, api, minor):
        return [_get(world, api, minor, path)]


def _get(world, api, minor, path):
    return api.get(
        spelled(path if isinstance(path, str) else path(world), minor),
        version=published.text(minor),
    )


def spelled(path: str, minor: int) -> str:
    """The path as it was called at the version."""
    if minor < 7:
        for new, old in _BELOW_7.items():
            if path.startswith(new):
                return old + path.removeprefix(new)
    return path


# Versions, zones, services, pools

in_get('versions', 'versions', '/', 'version', 'item')
in_get(
    'zones',
    'availability_zones',
    '/availability-zones',
    'availability zone',
    'item',
)
in_get('services', 'services', '/services', 'service', 'list item', who=ADMINS)
in_get(
    'pools',
    'pools',
    '/scheduler-stats/pools',
    'scheduler stats',
    'pool summary',
    who=ADMINS,
)
in_get(
    'pools in detail',
    'pools',
    '/scheduler-stats/pools/detail',
    'scheduler stats',
    'pool summary',
    'pool detail',
    who=ADMINS,
)


for verb in ('disable', 'enable'):

    @seen(f'service {verb}', 'service', 'update answer (flat)', who=ADMINS)
    def told(world, api, minor, verb=verb):
        path = spelled(f'/services/{verb}', minor)
        return [
            api.request(
                'PUT', path, SERVICE, expect=200, version=published.text(minor)
            ).json
        ]


# Shares

_ALL = 'all_tenants=1'


def _share(world):
    return f'/shares/{world.share}'


around(
    'shares',
    f'/shares?{_ALL}&limit=1&with_count=true',
    'share',
    'list wrapper',
)
in_get('shares', 'shares', f'/shares?{_ALL}', 'share', 'summary')
in_get(
    'shares in detail', 'shares', f'/shares/detail?{_ALL}', 'share', 'detail'
)
in_get('share', 'share', _share, 'share', 'detail')


@seen('share create', 'share', 'detail')
def created(world, api, minor):
    return [api.create(version=published.text(minor))]


@seen('share update', 'share', 'detail')
def updated(world, api, minor):
    return [
        api.request(
            'PUT',
            _share(world),
            {'share': {'display_name': 'new'}},
            expect=200,
            version=published.text(minor),
        ).json['share']
    ]


@seen(
    'share manage',
    'share',
    'detail',
    who=ADMINS,
    types={'integer GiB': 'null'},
)
def managed(world, api, minor):
    path = '/shares/manage' if minor >= 7 else '/os-share-manage'
    share = api.request(
        'POST',
        path,
        world.manage_body(),
        expect=200,
        version=published.text(minor),
    ).json['share']
    world.erase(share['id'])  # no list shows shares without a size
    return [share]


around(
    'share metadata',
    lambda world: f'{_share(world)}/metadata',
    'metadata',
    'all kinds',
)


# Instances


def _instance(world):
    return f'/share_instances/{world.instance_of(world.share)}'


around(
    'instances',
    '/share_instances',
    'share instance',
    'list wrapper',
    who=ADMINS,
    since=3,
)
in_get(
    'instances',
    'share_instances',
    '/share_instances',
    'share instance',
    'detail',
    who=ADMINS,
    since=3,
)
in_get(
    'instance',
    'share_instance',
    _instance,
    'share instance',
    'detail',
    who=ADMINS,
    since=3,
)
in_get(
    'instances of share',
    'share_instances',
    lambda world: f'{_share(world)}/instances',
    'share instance',
    'detail',
    who=ADMINS,
    since=3,
)


# Snapshots


def _snapshot(world):
    return f'/snapshots/{world.snapshot}'


def _snapshot_instance(world):
    id = world.instance_of_snapshot(world.snapshot)
    return f'/snapshot-instances/{id}'


around(
    'snapshots',
    f'/snapshots?{_ALL}&limit=1&with_count=true',
    'snapshot',
    'list wrapper',
)
in_get('snapshots', 'snapshots', f'/snapshots?{_ALL}', 'snapshot', 'summary')
in_get(
    'snapshots in detail',
    'snapshots',
    f'/snapshots/detail?{_ALL}',
    'snapshot',
    'detail',
)
in_get('snapshot', 'snapshot', _snapshot, 'snapshot', 'detail')


@seen('snapshot create', 'snapshot', 'detail')
def snapshot_created(world, api, minor):
    return [
        api.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': world.sitting()}},
            expect=202,
            version=published.text(minor),
        ).json['snapshot']
    ]


@seen('snapshot update', 'snapshot', 'detail')
def snapshot_updated(world, api, minor):
    return [
        api.request(
            'PUT',
            _snapshot(world),
            {'snapshot': {'display_name': 'new'}},
            expect=200,
            version=published.text(minor),
        ).json['snapshot']
    ]


@seen('snapshot manage', 'snapshot', 'detail', who=ADMINS, since=12)
def snapshot_managed(world, api, minor):
    return [
        api.request(
            'POST',
            '/snapshots/manage',
            world.manage_snapshot_body(),
            expect=202,
            version=published.text(minor),
        ).json['snapshot']
    ]


around(
    'snapshot metadata',
    lambda world: f'{_snapshot(world)}/metadata',
    'metadata',
    'all kinds',
    since=73,
)

in_get(
    'snapshot instances',
    'snapshot_instances',
    '/snapshot-instances',
    'snapshot instance',
    'summary',
    who=ADMINS,
    since=19,
)
in_get(
    'snapshot instances in detail',
    'snapshot_instances',
    '/snapshot-instances/detail',
    'snapshot instance',
    'detail',
    who=ADMINS,
    since=19,
)
in_get(
    'snapshot instance',
    'snapshot_instance',
    _snapshot_instance,
    'snapshot instance',
    'detail',
    who=ADMINS,
    since=19,
)


# Who may mount snapshots, and where


@seen(
    'allow_access to mount',
    'snapshot access',
    'snapshot_access and snapshot_access_list',
    since=32,
)
def allowed_to_mount(world, api, minor):
    return [
        api.request(
            'POST',
            f'{_snapshot(world)}/action',
            {'allow_access': world.rule_body()},
            expect=202,
            version=published.text(minor),
        ).json['snapshot_access']
    ]


@seen(
    'snapshot access list',
    'snapshot access',
    'snapshot_access and snapshot_access_list',
    since=32,
)
def listed_snapshot_rules(world, api, minor):
    world.new_snapshot_rule()
    return _get(world, api, minor, f'{_snapshot(world)}/access-list')[
        'snapshot_access_list'
    ]


for of, parent, who in (
    ('snapshot', _snapshot, EVERYBODY),
    ('snapshot instance', _snapshot_instance, ADMINS),
):

    def listed(world, parent=parent):
        return f'{parent(world)}/export-locations'

    def one(world, parent=parent):
        return f'{parent(world)}/export-locations/{world.export_of_snapshot()}'

    more = {'who': who, 'since': 32}
    in_get(
        f'exports of {of}',
        'share_snapshot_export_locations',
        listed,
        'snapshot export location',
        'list and show',
        **more,
    )
    in_get(
        f'export of {of}',
        'share_snapshot_export_location',
        one,
        'snapshot export location',
        'list and show',
        'show',
        **more,
    )


# Export locations


def _export_of(world):
    return f'/export_locations/{world.export_of(world.share)}'


for of, parent, who in (
    ('share', _share, EVERYBODY),
    ('instance', _instance, ADMINS),
):

    def listed(world, parent=parent):
        return f'{parent(world)}/export_locations'

    def one(world, parent=parent):
        return parent(world) + _export_of(world)

    more = {'who': who, 'since': 9}
    around(
        f'exports of {of}', listed, 'export location', 'list wrapper', **more
    )
    in_get(
        f'exports of {of}',
        'export_locations',
        listed,
        'export location',
        'summary',
        **more,
    )
    around(f'export of {of}', one, 'export location', 'show wrapper', **more)
    in_get(
        f'export of {of}',
        'export_location',
        one,
        'export location',
        'detail',
        **more,
    )

around(
    'export metadata',
    lambda world: f'{_share(world)}{_export_of(world)}/metadata',
    'metadata',
    'all kinds',
    since=87,
)


# Share types

around('types', '/types', 'share type', 'list wrapper')
for key in ('share_types', 'volume_types'):
    in_get(f'types as {key}', key, '/types', 'share type', 'item')
around('default type', '/types/default', 'share type', 'show wrapper')
around('type', f'/types/{TYPE_ID}', 'share type', 'show wrapper')
in_get('type', 'share_type', f'/types/{TYPE_ID}', 'share type', 'item')


@seen('type create', 'share type', 'show wrapper', who=ADMINS)
def type_created(world, api, minor):
    return [
        api.request(
            'POST',
            '/types',
            world.type_body(),
            expect=200,
            version=published.text(minor),
        ).json
    ]


@seen('type update', 'share type', 'item', who=ADMINS, since=50)
def type_updated(world, api, minor):
    return [
        api.request(
            'PUT',
            f'/types/{world.new_type()}',
            {'share_type': {'description': 'new'}},
            expect=200,
            version=published.text(minor),
        ).json['share_type']
    ]


for word in ('os-share-type-access', 'share_type_access'):
    in_get(
        word,
        'share_type_access',
        lambda world, word=word: f'/types/{world.private_type}/{word}',
        'share type access',
        'share_type_access[]',
        who=ADMINS,
    )


# Quotas

_QUOTA = f'/quota-sets/{TENANT}'
_CLASS = '/quota-class-sets/default'

for path in (_QUOTA, f'{_QUOTA}/defaults'):
    in_get(path, 'quota_set', path, 'quota set', 'show', 'show and update')
in_get(
    'quota detail',
    'quota_set',
    f'{_QUOTA}/detail',
    'quota set',
    'show',
    'show and update',
    since=25,
    types={'integer': 'object limit,in_use,reserved'},
)
in_get(
    'quota class',
    'quota_class_set',
    _CLASS,
    'quota class set',
    'show',
    'show and update',
)

for key, path in (('quota_set', _QUOTA), ('quota_class_set', _CLASS)):

    @seen(
        f'{key} update', key.replace('_', ' '), 'show and update', who=ADMINS
    )
    def quota_updated(world, api, minor, key=key, path=path):
        return [
            api.request(
                'PUT',
                spelled(path, minor),
                {key: {'snapshots': 70000}},
                expect=200,
                version=published.text(minor),
            ).json[key]
        ]


@seen('limits', 'limits', 'absolute')
def limits(world, api, minor):
    return [_get(world, api, minor, '/limits')['limits']['absolute']]


# Messages

around('messages', '/messages?limit=1', 'message', 'list wrapper', since=37)
in_get('messages', 'messages', '/messages', 'message', 'item', since=37)
in_get(
    'message',
    'message',
    lambda world: f'/messages/{world.message}',
    'message',
    'item',
    since=37,
)


# Resource locks

around(
    'locks',
    '/resource-locks?limit=1&with_count=true',
    'resource lock',
    'list wrapper',
    since=81,
)
in_get(
    'locks',
    'resource_locks',
    '/resource-locks',
    'resource lock',
    'item',
    since=81,
)
in_get(
    'lock',
    'resource_lock',
    lambda world: f'/resource-locks/{world.new_lock()}',
    'resource lock',
    'item',
    since=81,
)


@seen('lock create', 'resource lock', 'item', since=81)
def lock_created(world, api, minor):
    return [
        api.request(
            'POST',
            '/resource-locks',
            world.lock_body(),
            expect=200,
            version=published.text(minor),
        ).json['resource_lock']
    ]


@seen('lock update', 'resource lock', 'item', since=81)
def lock_updated(world, api, minor):
    return [
        api.request(
            'PUT',
            f'/resource-locks/{world.new_lock()}',
            {'resource_lock': {'lock_reason': 'it is ours'}},
            expect=200,
            version=published.text(minor),
        ).json['resource_lock']
    ]


# Access rules


def _acted(world, api, minor, action, body):
    name = action if minor >= 7 else f'os-{action}'
    return api.act(
        world.guarded, name, body, expect=200, version=published.text(minor)
    ).json


@seen('allow_access', 'share access', 'access')
def allowed(world, api, minor):
    return [
        _acted(world, api, minor, 'allow_access', world.rule_body())['access']
    ]


@seen('access list', 'share access', 'list item (access_list)')
def listed_rules(world, api, minor):
    world.new_rule()
    if minor < 45:
        answer = _acted(world, api, minor, 'access_list', None)
    else:
        answer = _get(
            world, api, minor, f'/share-access-rules?share_id={world.guarded}'
        )
    return answer['access_list']


def _rule(world):
    return f'/share-access-rules/{world.new_rule()}'


in_get('access rule', 'access', _rule, 'share access', 'access', since=45)


@seen('access rule update', 'share access', 'access', since=88)
def rule_updated(world, api, minor):
    return [
        api.request(
            'PUT',
            _rule(world),
            {'update_access': {'access_level': 'ro'}},
            expect=200,
            version=published.text(minor),
        ).json['access']
    ]


@seen('access rule metadata', 'metadata', 'all kinds', since=45)
def rule_metadata(world, api, minor):
    return [
        api.request(
            'PUT',
            f'{_rule(world)}/metadata',
            {'metadata': {'color': 'blue'}},
            expect=200,
            version=published.text(minor),
        ).json
    ]
