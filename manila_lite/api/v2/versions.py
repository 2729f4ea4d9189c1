"""The versions and the description of the API."""

from manila_lite.api import answers, versions, wsgi
from manila_lite.api.filters import Filter

_MEDIA_TYPE = 'application/vnd.openstack.share+json;version=1'


def document(public_url: str) -> dict:
    """Return the list of versions, the same at / and /v2/."""
    return {
        'versions': [
            {
                'id': 'v2.0',
                'status': 'CURRENT',
                'version': versions.text(versions.MAX),
                'min_version': versions.text(versions.MIN),
                'updated': '2015-08-27T11:33:21Z',
                'links': [
                    {
                        'rel': 'describedby',
                        'type': 'text/html',
                        'href': 'http://docs.openstack.org/',
                    },
                    {'rel': 'self', 'href': f'{public_url}/v2/'},
                ],
                'media-types': [{'base': 'application/json', 'type': _MEDIA_TYPE}],
            }
        ]
    }


_ANSWER = {
    'versions': [
        {
            'id': str,
            'status': str,
            'version': str,
            'min_version': str,
            'updated': str,
            'links': [{answers.MayLack('type'): str, 'rel': str, 'href': str}],
            'media-types': list[dict[str, str]],
        }
    ]
}


class VersionsController(wsgi.Controller):
    @wsgi.method(wsgi.OPEN, answer=_ANSWER)
    def index(self, req: wsgi.Request) -> dict:
        """List the versions; there is only /v2."""
        return document(req.public_url)


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
