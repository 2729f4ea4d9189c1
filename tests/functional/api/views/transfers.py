"""Views of share transfers."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    ALL_TENANTS,
    get_at_version,
    register_get_view,
    register_view,
)

_SINCE = 77


def _listed(sample, api, minor, path):
    return get_at_version(sample, api, minor, f'{path}?{ALL_TENANTS}&limit=1')


@register_view('transfers', 'share transfer', 'summary', since=_SINCE)
def summaries(sample, api, minor):
    return _listed(sample, api, minor, '/share-transfers')['transfers']


@register_view('transfers in detail', 'share transfer', 'detail', since=_SINCE)
def details(sample, api, minor):
    return _listed(sample, api, minor, '/share-transfers/detail')['transfers']


@register_view('transfers wrapper', 'share transfer', 'list wrapper', since=_SINCE)
def wrapper(sample, api, minor):
    return [_listed(sample, api, minor, '/share-transfers')]


register_get_view(
    'transfer',
    'transfer',
    lambda sample: f'/share-transfers/{sample.new_transfer()["id"]}',
    'share transfer',
    'detail',
    since=_SINCE,
)


@register_view(
    'transfer create', 'share transfer', 'detail', 'create answer', since=_SINCE
)
def created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/share-transfers',
            sample.transfer_body(),
            expect=202,
            version=published_api.version_text(minor),
        ).json['transfer']
    ]
