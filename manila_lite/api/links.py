"""Links to resources: self within the version, bookmark without it."""

import urllib.parse

from manila_lite.api import versions, wsgi


def collection_url(req: wsgi.Request, path: str) -> str:
    """Return the URL of a path such as 'shares', in the request's form.

    It contains the project id if the URL of the request does.
    """
    return f'{req.public_url}{versions.PREFIX}{_project(req)}/{path}'


def _project(req: wsgi.Request) -> str:
    if req.url_project is None:
        return ''
    return '/' + urllib.parse.quote(req.url_project, safe='')


class Links:
    """A callable that returns the two links of a resource id."""

    __slots__ = ('_bookmark', '_self')

    def __init__(self, req: wsgi.Request, collection: str):
        self._self = f'{collection_url(req, collection)}/'
        self._bookmark = f'{req.public_url}{_project(req)}/{collection}/'

    def __call__(self, id: str) -> list[dict[str, str]]:
        return [
            {'rel': 'self', 'href': self._self + id},
            {'rel': 'bookmark', 'href': self._bookmark + id},
        ]
