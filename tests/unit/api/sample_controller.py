"""A controller that uses everything the framework offers, for its tests."""

import types

from webob import exc

from manila_lite import exception
from manila_lite.api import schema
from manila_lite.api import wsgi
from manila_lite.api.router import action
from manila_lite.api.router import delete
from manila_lite.api.router import get
from manila_lite.api.router import post
from manila_lite.api.router import put
from manila_lite.api.router import serve
from manila_lite.api.v2.admin.extensions import ExtensionsController
from manila_lite.api.v2.versions import VersionsController

MINE, FOREIGN = 'abcdef0123', 'fedcba9876'

CREATE = schema.schema(
    ['size'],
    wrapper='shelf',
    missing=422,
    size=schema.positive_int,
    name=schema.alias('display_name', schema.string(nullable=True)),
    colour=schema.since('2.50', schema.one_of('red')),
)
UPDATE = schema.schema(
    wrapper='shelf', missing=400, extra='refuse', name=schema.string()
)
STRETCH = schema.schema(
    ['to'], to=schema.positive_int, force=schema.since('2.64', schema.boolean)
)
MEASURE = schema.schema(unit=schema.string())
MEASURE_AGAIN = schema.schema(
    ['unit'], extra='refuse', unit=schema.one_of('cm', 'inch')
)

ERRORS = {
    'quota': lambda: exception.ShareLimitExceeded(allowed=1, used=1),
    'busy': lambda: exception.ServiceUnavailable(),
    'inner': lambda: exception.NoValidHost(reason='rack 7 has burnt down'),
    'crash': lambda: RuntimeError('password=hunter2 at 10.0.0.7'),
    'conflict': lambda: exception.Conflict('no'),
    'webob': lambda: exc.HTTPUnsupportedMediaType('no such type'),
    'challenge': lambda: exc.HTTPUnauthorized(
        'who are you', headers={'WWW-Authenticate': 'Basic'}
    ),
    'moved': lambda: exc.HTTPFound(location='http://elsewhere/'),
    'gone': lambda: exc.HTTPGone('long ago'),
}


class SampleController(wsgi.Controller):
    """Shelves; those called f... belong to somebody else."""

    def target(self, req, shelf_id):
        if shelf_id == 'none':
            raise exception.NotFound('Shelf none could not be found.')
        return types.SimpleNamespace(
            id=shelf_id,
            user_id='u1',
            project_id=FOREIGN if shelf_id.startswith('f') else MINE,
        )

    @wsgi.method('share:get_all')
    def index(self, req):
        return {'shelves': [], 'query': req.query}

    @wsgi.method('share:get', target=True)
    def show(self, req, shelf):
        return {'shelf': {'id': shelf.id, 'minor': req.minor}}

    @wsgi.method('share:create', status=201, body=CREATE)
    def create(self, req, args):
        return {'args': args}

    @wsgi.method('share:update', body=UPDATE, target='target')
    def update(self, req, shelf, args):
        return {'id': shelf.id, 'args': args}

    @wsgi.method('share:delete', status=204, target=True)
    def delete(self, req, shelf):
        return None

    @wsgi.method('share:get_share_metadata', target=True)
    def book(self, req, shelf, book):
        return {'id': shelf.id, 'book': book, 'vars': req.path_vars}

    @wsgi.method()
    def raw(self, req):
        return b'{"raw": [1]}'

    @wsgi.method(status=200)
    def odd(self, req):
        return wsgi.Response([1], 203, [('X-Odd', 'yes')])

    @wsgi.method()
    def old(self, req):
        return {'is': 'old'}

    @wsgi.method()
    def new(self, req):
        return {'is': 'new'}

    @wsgi.method()
    def fail(self, req, how):
        raise ERRORS[how]()

    @wsgi.method()
    def echo(self, req):
        return {'body': req.json}

    @wsgi.action(
        'os-stretch', until='2.6', policy='share:extend', body=STRETCH
    )
    @wsgi.action('stretch', since='2.7', policy='share:extend', body=STRETCH)
    def stretch(self, req, shelf, args):
        return {'id': shelf.id, 'args': args}

    @wsgi.action('measure', until='2.44', status=200, body=MEASURE)
    @wsgi.action('measure', since='2.45', status=200, body=MEASURE_AGAIN)
    def measure(self, req, shelf, args):
        return {'args': args}

    @wsgi.action('reset', policy='share:reset_status')
    def reset(self, req, shelf):
        return None

    @wsgi.action('dream', since='2.10', experimental='2.20-2.30', target=False)
    def dream(self, req, shelf_id):
        return {'dreamt': shelf_id}


ROUTES = [
    *serve(VersionsController, '', get('/', 'index', kind='root')),
    *serve(
        ExtensionsController,
        '/extensions',
        get('', 'index'),
        get('/{alias}', 'show'),
    ),
    *serve(
        SampleController,
        '',
        get('/shelves', 'index'),
        post('/shelves', 'create'),
        get('/shelves/detail', 'raw'),
        get('/shelves/{shelf_id}', 'show'),
        put('/shelves/{shelf_id}', 'update'),
        delete('/shelves/{shelf_id}', 'delete'),
        action('/shelves/{shelf_id}/action'),
        get('/shelves/{shelf_id}/books/{book}', 'book'),
        get('/odd', 'odd', since='2.3', until='2.80'),
        get('/age', 'old', until='2.6'),
        get('/age', 'new', since='2.7', experimental='2.11-2.55'),
        get('/fail/{how}', 'fail'),
        post('/echo', 'echo'),
    ),
]
