"""Where the views of share servers are seen."""

from tests.functional.api import published_api as published
from tests.functional.api.views import ADMINS
from tests.functional.api.views import around
from tests.functional.api.views import in_get
from tests.functional.api.views import seen

# Until something happens to a server, nothing has.
_UNCHANGED = {'datetime': 'datetime|null'}


def _server(world):
    return f'/share-servers/{world.server}'


in_get(
    'servers',
    'share_servers',
    '/share-servers',
    'share server',
    'list item',
    who=ADMINS,
    types=_UNCHANGED,
)
in_get(
    'server',
    'share_server',
    _server,
    'share server',
    'detail',
    who=ADMINS,
    types=_UNCHANGED,
)
around(
    'server details',
    lambda world: f'{_server(world)}/details',
    'share server',
    'details wrapper',
    who=ADMINS,
)


@seen(
    'server manage',
    'share server',
    'detail',
    who=ADMINS,
    since=49,
    types=_UNCHANGED,
)
def managed(world, api, minor):
    return [
        api.request(
            'POST',
            '/share-servers/manage',
            world.server_body(),
            expect=202,
            version=published.text(minor),
        ).json['share_server']
    ]
