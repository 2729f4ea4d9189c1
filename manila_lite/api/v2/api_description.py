"""The description of the API in OpenAPI."""

from manila_lite.api import versions, wsgi
from manila_lite.api.filters import Filter

POLICY = 'api_description:get'
PATH = '/openapi.json'


class ApiDescriptionController(wsgi.Controller):
    @wsgi.method(POLICY, answer=dict, query=(Filter('version'),))
    def show(self, req: wsgi.Request) -> bytes:
        """Describe the version of the query, or that of the request."""
        wanted = req.query.get('version')
        return self.services.describe(
            self.services.conf, req.minor if wanted is None else versions.parse(wanted)
        )
