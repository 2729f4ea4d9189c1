"""The API in this process, on a database filled with shares."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import datetime
import io
import itertools
import json
import pathlib
import uuid

import sqlalchemy as sa

from manila_lite import conf as options
from manila_lite.api import wsgi
from manila_lite.api.ui import sessions
from manila_lite.cmd import running
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.build.process import Process
from manila_lite.context import PolicyEnforcer, RequestContext
from manila_lite.db import models
from manila_lite.db.models import services, shares, types
from manila_lite.db.session import Database, Session

PROJECT = 'a' * 32
METADATA_OF_EACH = 2
VERSION = '2.65'

_FIRST = datetime.datetime(2030, 1, 1)
_BATCH = 1000


class Application:
    """The WSGI application of `manila-lite-api`, called directly.

    Administrators use `noauth`; a fixed context stands for a member.
    """

    def __init__(self, url: str, project: str = PROJECT):
        conf = options.new()
        conf.set_override('auth_strategy', 'noauth')
        conf.set_override('enabled', True, group='ui')
        self.db = Database(url)
        process = Process(conf, self.db)
        admin, services = build_api(process)
        self._apps = {
            'admin': admin,
            'member': build_api(
                process, auth=_authenticate_as_member(services.enforcer, project)
            )[0],
        }
        running.tune_garbage_collector()

    def get(self, path: str, role: str = 'admin') -> bytes:
        """Return the body of the response; fail unless its status is 200."""
        return self._get(
            f'/v2{path}',
            role,
            HTTP_X_AUTH_TOKEN=f'reader:{PROJECT}',
            HTTP_X_OPENSTACK_MANILA_API_VERSION=VERSION,
        )

    def get_page(self, path: str, role: str = 'admin') -> bytes:
        """Return what a browser gets that has signed in."""
        session = sessions.begin(f'reader:{PROJECT}')
        return self._get(path, role, HTTP_COOKIE=f'{sessions.COOKIE}={session.value}')

    def _get(self, path: str, role: str, **headers: str) -> bytes:
        return get(self._apps[role], path, headers)

    def first_share(self) -> str:
        """Return the id of one share."""
        return json.loads(self.get('/shares?limit=1'))['shares'][0]['id']


def get(app: Callable, path: str, headers: Mapping[str, str]) -> bytes:
    """Return the body of the response; fail unless its status is 200.

    `headers` are named as in the environment of WSGI.
    """
    path, _, query = path.partition('?')
    answer: list[str] = []
    body = app(
        {
            'REQUEST_METHOD': 'GET',
            'SCRIPT_NAME': '',
            'PATH_INFO': path,
            'QUERY_STRING': query,
            'SERVER_NAME': '127.0.0.1',
            'SERVER_PORT': '8786',
            'HTTP_HOST': '127.0.0.1:8786',
            'SERVER_PROTOCOL': 'HTTP/1.1',
            'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(),
            **headers,
        },
        lambda status, headers, error=None: answer.append(status),
    )
    assert answer[0].startswith('200'), (answer, body)
    return b''.join(body)


def _authenticate_as_member(enforcer: PolicyEnforcer, project: str) -> Callable:
    """Return a filter that makes every caller a member of the project."""

    def wrap(app: Callable) -> Callable:
        def authenticate(environ: dict, start_response: Callable) -> Iterable:
            environ[wsgi.CONTEXT] = RequestContext(
                user_id='reader',
                project_id=project,
                roles=['member', 'reader'],
                enforcer=enforcer,
            )
            return app(environ, start_response)

        return authenticate

    return wrap


@contextlib.contextmanager
def filled(url: str, number: int) -> Iterator[Application]:
    """Yield the application on a new database with `number` shares."""
    application = Application(url)
    models.metadata.create_all(application.db.engine)
    for first in range(0, number, _BATCH):
        application.db.write(_fill, range(first, min(first + _BATCH, number)))
    application.db.write(_analyze)
    try:
        yield application
    finally:
        application.db.dispose()


def sqlite(folder: pathlib.Path) -> str:
    """Return the URL of a new SQLite database in the folder."""
    return f'sqlite:///{folder}/{uuid.uuid4().hex}.sqlite'


def _fill(session: Session, numbers: range) -> None:
    type_id, zone_id = _type_and_zone(session)
    rows: list[tuple[dict, dict, list[dict]]] = [
        _share(session, number, type_id, zone_id) for number in numbers
    ]
    for model, of_model in (
        (shares.Share, [row[0] for row in rows]),
        (shares.ShareInstance, [row[1] for row in rows]),
        (
            shares.ShareMetadata,
            list(itertools.chain.from_iterable(row[2] for row in rows)),
        ),
    ):
        session.run_many(sa.insert(model.__table__), of_model)


def _type_and_zone(session: Session) -> tuple[str, str]:
    found = []
    for model, values in (
        (types.ShareType, {'is_public': True}),
        (services.AvailabilityZone, {}),
    ):
        table = model.__table__
        id = session.value(sa.select(table.c.id))
        if id is None:
            id = session.new_id()
            session.run(
                sa.insert(table),
                id=id,
                name='default',
                created_at=session.now,
                **values,
            )
        found.append(id)
    return found[0], found[1]


def _share(
    session: Session, number: int, type_id: str, zone_id: str
) -> tuple[dict, dict, list[dict]]:
    id = session.new_id()
    created_at = _FIRST + datetime.timedelta(seconds=number)
    share = {
        'id': id,
        'user_id': 'reader',
        'project_id': PROJECT,
        'size': 1,
        'display_name': f'share {number}',
        'display_description': 'one',
        'snapshot_support': True,
        'revert_to_snapshot_support': True,
        'create_share_from_snapshot_support': True,
        'mount_snapshot_support': False,
        'share_proto': 'NFS',
        'snapshot_inherit_share_access_support': False,
        'is_public': False,
        'is_soft_deleted': False,
        'created_at': created_at,
        'updated_at': created_at,
    }
    instance = {
        'id': session.new_id(),
        'share_id': id,
        'status': 'available',
        'host': 'node@alpha#pool',
        'progress': '100%',
        'access_rules_status': 'active',
        'cast_rules_to_readonly': False,
        'share_type_id': type_id,
        'availability_zone_id': zone_id,
        'created_at': created_at,
        'updated_at': created_at,
    }
    return (
        share,
        instance,
        [
            {'share_id': id, 'key': f'key {place}', 'value': f'value {number}'}
            for place in range(METADATA_OF_EACH)
        ],
    )


def _analyze(session: Session) -> None:
    """Update the planner statistics, as database servers do in time."""
    for table in ('shares', 'share_instances', 'share_metadata'):
        if session.dialect == 'mysql':
            session.rows(sa.text(f'ANALYZE TABLE {table}'))
        elif session.dialect == 'postgresql':
            session.run(sa.text(f'ANALYZE {table}'))
