"""A client of the application with the controllers of plain records only."""

import contextlib
import json
import types

import sqlalchemy as sa
import webob

from manila_lite import context
from manila_lite.api import app, routes, versions
from manila_lite.db import models
from manila_lite.db.queries.services import incarnations
from manila_lite.scheduler.filters import capabilities as extra_specs
from manila_lite.scheduler.pools import Capabilities, Pool

MINE = 'e1284adea3ee4d2482af5ed214f3ad90'
FOREIGN = '818a3f48dcd644909b3fa2e45a399a27'
ADMIN, MEMBER, READER, GUEST = 'admin', 'member,reader', 'reader', 'guest'


PLAIN_CONTROLLERS = {
    'AvailabilityZonesController',
    'MessagesController',
    'QosTypeSpecsController',
    'QosTypesController',
    'SchedulerStatsController',
    'ServicesController',
    'ShareGroupTypeAccessController',
    'ShareGroupTypeSpecsController',
    'ShareGroupTypesController',
    'ShareTypeAccessController',
    'ShareTypeExtraSpecsController',
    'ShareTypesController',
}
PLAIN_ROUTES = [
    route for route in routes.ROUTES if route.controller.__name__ in PLAIN_CONTROLLERS
]


class HeaderAuth:
    """Authentication by headers: every request is accepted."""

    def __init__(self, app, enforcer):
        self.app, self.enforcer = app, enforcer

    def __call__(self, environ, start_response):
        roles = environ['HTTP_X_ROLES'].split(',')
        environ['manila_lite.context'] = context.RequestContext(
            user_id='u1',
            project_id=environ['HTTP_X_PROJECT'],
            roles=roles,
            is_admin='admin' in roles,
            enforcer=self.enforcer,
            request_id=environ['openstack.request_id'],
        )
        return self.app(environ, start_response)


def pool_matches(capabilities, specs):
    """Compare with the scheduler's own function, as the service does."""
    pool = Pool(
        host='',
        capabilities=Capabilities(capabilities),
        zone=None,
        service_up=True,
        service_enabled=True,
        total_gb=None,
        free_gb=None,
        allocated_gb=0,
        pending_gb=0,
    )
    return all(
        extra_specs.mismatch_reason(pool, key, wanted) is None
        for key, wanted in specs.items()
    )


class Api:
    """Sends requests; calling it returns the body of the expected answer."""

    def __init__(self, db, conf, enforcer):
        self.db = db
        self.app = app.build_app(
            conf,
            types.SimpleNamespace(
                db=db, conf=conf, enforcer=enforcer, pool_matches=pool_matches
            ),
            enforcer,
            lambda v2: HeaderAuth(v2, enforcer),
            table=PLAIN_ROUTES,
        )

    def __call__(self, method, path, body=None, *, expect=200, **options):
        answer = self.send(method, path, body, **options)
        assert answer.status_int == expect, answer.text
        return answer.json if answer.body else None

    def send(self, method, path, body=None, *, minor=99, roles=ADMIN, project=MINE):
        """Send a request; return the response."""
        req = webob.Request.blank(
            '/v2' + path,
            method=method,
            headers={
                versions.HEADER: versions.text(minor),
                'X-Roles': roles,
                'X-Project': project,
            },
        )
        if body is not None:
            req.body = body if isinstance(body, bytes) else json.dumps(body).encode()
            req.content_type = 'application/json'
        return req.get_response(self.app)

    def get(self, path, **options):
        return self('GET', path, **options)

    def refused(self, method, path, body=None, *, expect=400, **options):
        """Send a request that is refused; return the message of the fault."""
        (fault,) = self(method, path, body, expect=expect, **options).values()
        assert fault['code'] == expect
        return fault['message']

    def create_type(self, name='fast', specs=None, *, public=True, **options):
        """Create a share type; return it."""
        return self(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': name,
                    'share_type_access:is_public': public,
                    'extra_specs': {
                        'driver_handles_share_servers': False,
                        **(specs or {}),
                    },
                }
            },
            **options,
        )['share_type']

    def register(
        self, host, binary='manila-share', zone='nova', *, enabled=True, health=None
    ):
        """Register a service."""
        self.db.write(
            incarnations.register,
            host=host,
            binary=binary,
            topic=binary,
            zone=zone,
            incarnation='i1',
            down_time=60.0,
            enabled=enabled,
            health=health,
        )

    @contextlib.contextmanager
    def record_statements(self):
        """Collect the statements sent inside the context."""
        sent = []
        self.db.on_step = lambda name: (
            sent.append(name) if (name == 'statement') else None
        )
        yield sent
        self.db.on_step = lambda name: None

    def all_rows(self):
        """Return all rows of all tables, to detect changes."""
        return self.db.read(
            lambda session: {
                table.name: [tuple(row) for row in session.rows(sa.select(table))]
                for table in models.metadata.sorted_tables
            }
        )
