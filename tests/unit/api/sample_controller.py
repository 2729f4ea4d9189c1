"""A controller that uses all features of the framework, for its tests."""

import types

from webob import exc

from manila_lite import exception
from manila_lite.api import schema, wsgi
from manila_lite.api.router import action, delete, get, post, put, serve
from manila_lite.api.v2.admin.site import ExtensionsController
from manila_lite.api.v2.versions import VersionsController

OWN_PROJECT, OTHER_PROJECT = 'abcdef0123', 'fedcba9876'

CREATE = schema.schema(
    ['size'],
    wrapper='widget',
    missing=422,
    size=schema.positive_int,
    name=schema.alias('display_name', schema.string(nullable=True)),
    colour=schema.since('2.50', schema.one_of('red')),
)
UPDATE = schema.schema(
    wrapper='widget', missing=400, extra='refuse', name=schema.string()
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
    'forbidden': lambda: exception.Forbidden('no'),
    'webob': lambda: exc.HTTPUnsupportedMediaType('no such type'),
    'challenge': lambda: exc.HTTPUnauthorized(
        'who are you', headers={'WWW-Authenticate': 'Basic'}
    ),
    'moved': lambda: exc.HTTPFound(location='http://elsewhere/'),
    'text': lambda: exception.InvalidInput(reason='access_key: must be a text'),
    'known': lambda: exception.InvalidInput(
        reason='the-secret, see http://root:hunter2@array'
    ),
    'gone': lambda: exc.HTTPGone('long ago'),
}

LENDING_ERRORS = {
    'lost': exception.ShareNotFound(share_id='lost'),
    'unknown': exception.ShareNetworkNotFound(share_network_id='n1'),
    'busy': exception.InvalidStatus(
        resource='widget instance', id='w1', status='lent', event='lend', allowed='idle'
    ),
    'odd': exception.Conflict('no'),
}


class SampleController(wsgi.Controller):
    """Widgets; those whose id begins with f belong to another project."""

    def target(self, req, widget_id):
        if widget_id == 'overloaded':
            raise exception.DatabaseBusy
        if widget_id == 'none':
            raise exception.NotFound('Widget none could not be found.')
        return types.SimpleNamespace(
            id=widget_id,
            user_id='u1',
            project_id=OTHER_PROJECT if widget_id.startswith('f') else OWN_PROJECT,
        )

    @wsgi.method('share:get_all')
    def index(self, req):
        return {'widgets': [], 'query': req.query}

    @wsgi.method('share:get', target=True)
    def show(self, req, widget):
        return {'widget': {'id': widget.id, 'minor': req.minor}}

    @wsgi.method('share:create', status=201, body=CREATE)
    def create(self, req, args):
        return {'args': args}

    @wsgi.method('share:update', body=UPDATE, target='target')
    def update(self, req, widget, args):
        return {'id': widget.id, 'args': args}

    @wsgi.method('share:delete', status=204, target=True)
    def delete(self, req, widget):
        return None

    @wsgi.method('share:get_share_metadata', target=True)
    def part(self, req, widget, part):
        return {'id': widget.id, 'part': part, 'vars': req.path_vars}

    @wsgi.method(wsgi.OPEN)
    def raw(self, req):
        return b'{"raw": [1]}'

    @wsgi.method(wsgi.OPEN, status=200)
    def odd(self, req):
        return wsgi.Response([1], 203, [('X-Odd', 'yes')])

    @wsgi.method(wsgi.OPEN)
    def old(self, req):
        return {'is': 'old'}

    @wsgi.method(wsgi.OPEN)
    def new(self, req):
        return {'is': 'new'}

    @wsgi.method(wsgi.OPEN)
    def fail(self, req, how):
        raise ERRORS[how]()

    @wsgi.method(wsgi.OPEN)
    def echo(self, req):
        return {'body': req.json}

    @wsgi.action('os-stretch', 'share:extend', until='2.6', body=STRETCH)
    @wsgi.action('stretch', 'share:extend', since='2.7', body=STRETCH)
    def stretch(self, req, widget, args):
        return {'id': widget.id, 'args': args}

    @wsgi.action('measure', wsgi.OPEN, until='2.44', status=200, body=MEASURE)
    @wsgi.action('measure', wsgi.OPEN, since='2.45', status=200, body=MEASURE_AGAIN)
    def measure(self, req, widget, args):
        return {'args': args}

    @wsgi.action('reset', 'share:reset_status')
    def reset(self, req, widget):
        return None

    @wsgi.action(
        'lend',
        wsgi.OPEN,
        refused={
            exception.ShareNotFound: exception.Forbidden,
            exception.NotFound: exception.InvalidInput,
            exception.InvalidStatus: exception.InvalidShare,
        },
    )
    def lend(self, req, widget):
        raise LENDING_ERRORS[widget.id]

    @wsgi.action(
        'dream', wsgi.OPEN, since='2.10', experimental='2.20-2.30', target=False
    )
    def dream(self, req, widget_id):
        return {'dreamt': widget_id}


ROUTES = [
    *serve(VersionsController, '', get('/', 'index', kind='root')),
    *serve(
        ExtensionsController, '/extensions', get('', 'index'), get('/{alias}', 'show')
    ),
    *serve(
        SampleController,
        '',
        get('/widgets', 'index'),
        post('/widgets', 'create'),
        get('/widgets/detail', 'raw'),
        get('/widgets/{widget_id}', 'show'),
        put('/widgets/{widget_id}', 'update'),
        delete('/widgets/{widget_id}', 'delete'),
        action('/widgets/{widget_id}/action'),
        get('/widgets/{widget_id}/parts/{part}', 'part'),
        get('/odd', 'odd', since='2.3', until='2.80'),
        get('/age', 'old', until='2.6'),
        get('/age', 'new', since='2.7', experimental='2.11-2.55'),
        get('/fail/{how}', 'fail'),
        post('/echo', 'echo'),
    ),
]
