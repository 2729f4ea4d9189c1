"""Where the views of share servers are seen."""

from tests.functional.api import published_api as published
from tests.functional.api.views import ADMIN_ONLY
from tests.functional.api.views import register_get_view
from tests.functional.api.views import register_view
from tests.functional.api.views import register_wrapper_view

# Until something happens to a server, nothing has.
_UNCHANGED = {'datetime': 'datetime|null'}


def _server(sample):
    return f'/share-servers/{sample.server}'


register_get_view(
    'servers',
    'share_servers',
    '/share-servers',
    'share server',
    'list item',
    who=ADMIN_ONLY,
    types=_UNCHANGED,
)
register_get_view(
    'server',
    'share_server',
    _server,
    'share server',
    'detail',
    who=ADMIN_ONLY,
    types=_UNCHANGED,
)
register_wrapper_view(
    'server details',
    lambda sample: f'{_server(sample)}/details',
    'share server',
    'details wrapper',
    who=ADMIN_ONLY,
)


@register_view(
    'server manage',
    'share server',
    'detail',
    who=ADMIN_ONLY,
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
            version=published.version_text(minor),
        ).json['share_server']
    ]
