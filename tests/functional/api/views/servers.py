"""Requests that show the views of share servers."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    ADMIN_ONLY,
    register_get_view,
    register_view,
    register_wrapper_view,
)

# A server that was never updated has no time of it.
_UNCHANGED = {'datetime': 'datetime|null'}


def _server(sample):
    return f'/share-servers/{sample.server}'


register_get_view(
    'servers',
    'share_servers',
    '/share-servers',
    'share server',
    'list item',
    personas=ADMIN_ONLY,
    types=_UNCHANGED,
)
register_get_view(
    'server',
    'share_server',
    _server,
    'share server',
    'detail',
    personas=ADMIN_ONLY,
    types=_UNCHANGED,
)
register_wrapper_view(
    'server details',
    lambda sample: f'{_server(sample)}/details',
    'share server',
    'details wrapper',
    personas=ADMIN_ONLY,
)


@register_view(
    'server manage',
    'share server',
    'detail',
    personas=ADMIN_ONLY,
    since=49,
    types=_UNCHANGED,
)
def managed(sample, api, minor):
    return [
        api.request(
            'POST',
            '/share-servers/manage',
            sample.manage_server_body(),
            expect=202,
            version=published_api.version_text(minor),
        ).json['share_server']
    ]
