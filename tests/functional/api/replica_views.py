"""Where the views of replicas are seen."""

from manila_lite.api import versions
from tests.functional.api import published_api as published
from tests.functional.api.views import around
from tests.functional.api.views import seen

_EXPERIMENT = {versions.EXPERIMENTAL_HEADER: 'true'}


def _in_get(place, key, path, resource, *parts, **more):
    @seen(place, resource, *parts, **more)
    def look(world, api, minor):
        found = _get(world, api, minor, path)[key]
        return found if isinstance(found, list) else [found]


def _around(place, path, *parts, **more):
    @seen(place, *parts, **more)
    def look(world, api, minor):
        return [_get(world, api, minor, path)]


def _get(world, api, minor, path):
    return api.get(
        path if isinstance(path, str) else path(world),
        version=published.text(minor),
        **_EXPERIMENT,
    )


def _replica(world):
    return f'/share-replicas/{world.replica}'


def _exports(world):
    return f'{_replica(world)}/export-locations'


_around(
    'replicas',
    '/share-replicas?limit=1',
    'share replica',
    'list wrapper',
    since=11,
)
_in_get(
    'replicas',
    'share_replicas',
    '/share-replicas',
    'share replica',
    'summary',
    since=11,
)
_in_get(
    'replicas in detail',
    'share_replicas',
    '/share-replicas/detail',
    'share replica',
    'detail',
    since=11,
)
_in_get(
    'replica', 'share_replica', _replica, 'share replica', 'detail', since=11
)


@seen('replica create', 'share replica', 'detail', since=11)
def created(world, api, minor):
    world.mirror()
    return [
        api.request(
            'POST',
            '/share-replicas',
            {'share_replica': {'share_id': world.mirrored}},
            expect=202,
            version=published.text(minor),
            **_EXPERIMENT,
        ).json['share_replica']
    ]


@seen('replica promote', 'share replica', 'detail', since=11)
def promoted(world, api, minor):
    return [
        api.request(
            'POST',
            f'/share-replicas/{world.mirror()}/action',
            {'promote': None},
            expect=202,
            version=published.text(minor),
            **_EXPERIMENT,
        ).json['share_replica']
    ]


around(
    'replica metadata',
    lambda world: f'{_replica(world)}/metadata',
    'metadata',
    'all kinds',
    since=95,
)

_in_get(
    'exports of replica',
    'export_locations',
    _exports,
    'export location',
    'summary',
    'replica list and detail',
    since=47,
)
_in_get(
    'export of replica',
    'export_location',
    lambda world: f'{_exports(world)}/{world.replica_export}',
    'export location',
    'detail',
    'replica list and detail',
    since=47,
)
