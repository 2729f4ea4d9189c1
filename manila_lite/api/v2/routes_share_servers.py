"""Routes of share servers."""

from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.servers import actions as share_server_actions
from manila_lite.api.v2.servers import share_servers

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'share_servers': share_servers.ShareServersController,
    'share_server_actions': share_server_actions.ShareServerActionsController,
}

_SERVER = '/share-servers/{share_server_id}'

# fmt: off
ROUTES = [
    Route('GET', '/share-servers', 'share_servers', 'index'),
    Route('POST', '/share-servers/manage', 'share_servers', 'manage',
          since='2.49', kind='free'),
    Route('GET', _SERVER, 'share_servers', 'show'),
    Route('GET', f'{_SERVER}/details', 'share_servers', 'details',
          kind='member'),
    Route('DELETE', _SERVER, 'share_servers', 'delete'),
    Route('POST', f'{_SERVER}/action', 'share_server_actions', ACTION),
]
# fmt: on
