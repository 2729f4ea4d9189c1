"""Requests that show the views of replicas."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    EXPERIMENT,
    register_get_view,
    register_view,
    register_wrapper_view,
)


def _replica(sample):
    return f'/share-replicas/{sample.replica}'


def _exports(sample):
    return f'{_replica(sample)}/export-locations'


register_wrapper_view(
    'replicas', '/share-replicas?limit=1', 'share replica', 'list wrapper', since=11
)
register_get_view(
    'replicas',
    'share_replicas',
    '/share-replicas',
    'share replica',
    'summary',
    since=11,
)
register_get_view(
    'replicas in detail',
    'share_replicas',
    '/share-replicas/detail',
    'share replica',
    'detail',
    since=11,
)
register_get_view(
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
            **EXPERIMENT,
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
            **EXPERIMENT,
        ).json['share_replica']
    ]


register_wrapper_view(
    'replica metadata',
    lambda sample: f'{_replica(sample)}/metadata',
    'metadata',
    'all kinds',
    since=95,
)

register_get_view(
    'exports of replica',
    'export_locations',
    _exports,
    'export location',
    'summary',
    'replica list and detail',
    since=47,
)
register_get_view(
    'export of replica',
    'export_location',
    lambda sample: f'{_exports(sample)}/{sample.replica_export}',
    'export location',
    'detail',
    'replica list and detail',
    since=47,
)
