"""Requests that show the views of replicas."""

from manila_lite.api import versions
from tests.functional.api import published_api
from tests.functional.api.views.registry import register_view
from tests.functional.api.views.registry import register_wrapper_view

_EXPERIMENT = {versions.EXPERIMENTAL_HEADER: 'true'}


def _in_get(title, key, path, resource, *parts, **options):
    @register_view(title, resource, *parts, **options)
    def fetch_items(sample, api, minor):
        found = _get(sample, api, minor, path)[key]
        return found if isinstance(found, list) else [found]


def _around(title, path, *parts, **options):
    @register_view(title, *parts, **options)
    def fetch_items(sample, api, minor):
        return [_get(sample, api, minor, path)]


def _get(sample, api, minor, path):
    return api.get(
        path if isinstance(path, str) else path(sample),
        version=published_api.version_text(minor),
        **_EXPERIMENT,
    )


def _replica(sample):
    return f'/share-replicas/{sample.replica}'


def _exports(sample):
    return f'{_replica(sample)}/export-locations'


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


@register_view('replica create', 'share replica', 'detail', since=11)
def created(sample, api, minor):
    sample.idle_replica()
    return [
        api.request(
            'POST',
            '/share-replicas',
            {'share_replica': {'share_id': sample.spare_replicated_share}},
            expect=202,
            version=published_api.version_text(minor),
            **_EXPERIMENT,
        ).json['share_replica']
    ]


@register_view('replica promote', 'share replica', 'detail', since=11)
def promoted(sample, api, minor):
    return [
        api.request(
            'POST',
            f'/share-replicas/{sample.idle_replica()}/action',
            {'promote': None},
            expect=202,
            version=published_api.version_text(minor),
            **_EXPERIMENT,
        ).json['share_replica']
    ]


register_wrapper_view(
    'replica metadata',
    lambda sample: f'{_replica(sample)}/metadata',
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
    lambda sample: f'{_exports(sample)}/{sample.replica_export}',
    'export location',
    'detail',
    'replica list and detail',
    since=47,
)
