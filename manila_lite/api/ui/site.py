"""The pages, by method and path."""

from collections.abc import Callable, Iterable, Mapping
import re

from manila_lite import exception
from manila_lite.api import router, wsgi
from manila_lite.api.auth.caller import App
from manila_lite.api.services import ApiServices
from manila_lite.api.ui import (
    charts,
    estate,
    failures,
    groups,
    migrations,
    networks,
    overview,
    servers,
    shares,
)
from manila_lite.api.ui.visit import Answer, Handler, Totals, Visit


def _posts(path: str, actions: Mapping[str, Handler]) -> dict[str, dict[str, Handler]]:
    """Return the paths below that of a resource that actions are posted to."""
    return {f'{path}/{name}': {'POST': handler} for name, handler in actions.items()}


PAGES: dict[str, dict[str, Handler]] = {
    '/ui/': {'GET': overview.show},
    '/ui/rows': {'GET': overview.list_rows},
    '/ui/failures': {'GET': failures.show},
    '/ui/failures/selected': {'POST': failures.act_on_selected},
    '/ui/shares': {'GET': shares.index, 'POST': shares.create},
    '/ui/shares/selected': {'POST': shares.act_on_selected},
    '/ui/shares/{share_id}': {'GET': shares.show},
    '/ui/shares/{share_id}/migration': {'GET': migrations.show},
    **_posts('/ui/shares/{share_id}', {**shares.ACTIONS, **migrations.ACTIONS}),
    '/ui/groups': {'GET': groups.index, 'POST': groups.create},
    '/ui/groups/selected': {'POST': groups.act_on_selected},
    '/ui/groups/{group_id}': {'GET': groups.show},
    **_posts('/ui/groups/{group_id}', groups.ACTIONS),
    '/ui/networks': {'GET': networks.index, 'POST': networks.create},
    '/ui/networks/selected': {'POST': networks.act_on_selected},
    '/ui/networks/{network_id}': {'GET': networks.show},
    **_posts('/ui/networks/{network_id}', networks.ACTIONS),
    '/ui/security-services': {
        'GET': networks.security_services,
        'POST': networks.create_security_service,
    },
    '/ui/security-services/{security_service_id}/delete': {
        'POST': networks.delete_security_service
    },
    '/ui/servers': {'GET': servers.index},
    '/ui/servers/selected': {'POST': servers.act_on_selected},
    '/ui/servers/{server_id}': {'GET': servers.show},
    **_posts('/ui/servers/{server_id}', servers.ACTIONS),
    '/ui/in-flight': {'GET': overview.in_flight},
    '/ui/recovery': {'GET': overview.recovery_log},
    '/ui/recovery/run': {'POST': overview.run_recovery},
    '/ui/migrations': {'GET': migrations.index},
    '/ui/capacity': {'GET': estate.capacity},
    '/ui/charts': {'GET': charts.show},
    '/ui/quotas': {'GET': estate.quotas},
    '/ui/services': {'GET': estate.services},
}
"""The handlers of each template of a path, by method."""

_VARIABLE = re.compile(r'\{(\w+)\}')
# Nothing else that the API has a path for, such as /shares/detail.
_ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
_PATTERNS = [
    (re.compile(_VARIABLE.sub(rf'(?P<\1>{_ID})', template)), template, handlers)
    for template, handlers in PAGES.items()
]


class PageApplication:
    """The WSGI application of the pages; callers are authenticated."""

    def __init__(self, api: App, services: ApiServices):
        self._api, self._services = api, services
        self._totals = Totals()

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        visit = Visit(environ, self._api, self._services, self._totals)
        try:
            answer = self._answer(visit)
        except exception.ManilaLiteError as error:
            if error.code >= 500:
                raise
            values = {'message': error.public_message}
            answer = Answer(error.code, 'error.html', values)
        return visit.render(answer, start_response)

    def _answer(self, visit: Visit) -> Answer:
        method = visit.environ['REQUEST_METHOD']
        if visit.path == '/ui':
            return visit.see('/ui/')
        for pattern, template, handlers in _PATTERNS:
            match = pattern.fullmatch(visit.path)
            if match is None:
                continue
            visit.environ[wsgi.ROUTE] = template
            visit.names = match.groupdict()
            handler = handlers.get('GET' if method == 'HEAD' else method)
            if handler is None:
                raise router.method_not_allowed(handlers)
            return handler(visit)
        raise exception.NotFound('There is no such page.')
