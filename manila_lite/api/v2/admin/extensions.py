"""API extensions: a published resource that is always empty."""

from manila_lite import exception
from manila_lite.api import wsgi


class ExtensionsController(wsgi.Controller):
    @wsgi.method(wsgi.OPEN, answer={'extensions': list[dict]})
    def index(self, req: wsgi.Request) -> dict:
        """List the extensions."""
        return {'extensions': []}

    @wsgi.method(wsgi.OPEN, answer={'extension': dict})
    def show(self, req: wsgi.Request, alias: str) -> dict:
        """Raise ExtensionNotFound: every alias is unknown."""
        raise exception.ExtensionNotFound(alias=alias)
