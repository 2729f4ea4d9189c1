"""A small identity service on loopback, for real clients and middleware.

It implements version discovery, password authentication and token
validation. The test defines the users, their roles and the endpoint of the
only share service in the catalog.
"""

import dataclasses
import datetime
from http import server
import json
import threading
import uuid

_DOMAIN = {'id': 'default', 'name': 'Default'}


@dataclasses.dataclass
class User:
    """A user of one project; ids are generated unless given."""

    name: str
    password: str
    project: str
    roles: tuple[str, ...]
    id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
    project_id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)


class Refused(Exception):
    """The request is answered with this status code."""


class Keystone:
    """The service; `with Keystone() as keystone` runs it.

    `share_url` is the endpoint of the share service in the catalogs of
    future tokens, `lifetime` that of the tokens in seconds. `validations`
    counts validated tokens.
    """

    def __init__(self, share_url='http://127.0.0.1:8786/v2'):
        self.share_url = share_url
        self.lifetime = 3600
        self.validations = 0
        self._users = {}
        self._tokens = {}
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), type('Handler', (_Handler,), {'keystone': self})
        )
        self._server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self._server.server_port}/v3'
        self.service = self.add_user('manila', 'service-secret', 'service', ['service'])

    def __enter__(self):
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add_user(self, name, password, project, roles, **ids):
        """Add a user; users with the same project name share the project."""
        for other in self._users.values():
            if other.project == project:
                ids.setdefault('project_id', other.project_id)
        user = User(name, password, project, tuple(roles), **ids)
        self._users[name] = user
        return user

    def revoke(self, token):
        """Forget a token, so that it is no longer valid."""
        del self._tokens[token]

    def client_options(self, user):
        """Return the options of keystoneauth's password plugin for a user."""
        return {
            'auth_url': self.url,
            'username': user.name,
            'password': user.password,
            'project_name': user.project,
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        }

    def service_config(self):
        """Return the configuration section of a service that uses this."""
        options = {
            'www_authenticate_uri': self.url,
            'auth_type': 'password',
            **self.client_options(self.service),
        }
        lines = (f'{name} = {value}' for name, value in options.items())
        return '\n'.join(('[keystone_authtoken]', *lines, ''))

    # Called by the request handler

    def versions(self):
        return {
            'id': 'v3.14',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'media-types': [],
            'links': [{'rel': 'self', 'href': self.url + '/'}],
        }

    def authenticate(self, auth):
        """Return (token, description) for a password authentication."""
        try:
            given = auth['identity']['password']['user']
            user = self._users[given['name']]
        except KeyError:
            raise Refused(401) from None
        if given['password'] != user.password:
            raise Refused(401)
        token = uuid.uuid4().hex
        self._tokens[token] = self._describe(user, auth.get('scope', {}))
        return token, self._tokens[token]

    def validate(self, own, subject):
        """Return the description of a token; `own` authenticates the call."""
        if own not in self._tokens:
            raise Refused(401)
        self.validations += 1
        try:
            return self._tokens[subject]
        except KeyError:
            raise Refused(404) from None

    def _describe(self, user, scope):
        now = datetime.datetime.now(datetime.UTC)
        lifetime = datetime.timedelta(seconds=self.lifetime)
        token = {
            'methods': ['password'],
            'audit_ids': [uuid.uuid4().hex],
            'issued_at': _timestamp(now),
            'expires_at': _timestamp(now + lifetime),
            'user': {
                'id': user.id,
                'name': user.name,
                'domain': _DOMAIN,
                'password_expires_at': None,
            },
            'roles': [{'id': role, 'name': role} for role in user.roles],
            'catalog': [
                _service('identity', 'keystone', self.url),
                _service('shared-file-system', 'manila', self.share_url),
            ],
        }
        if 'system' in scope:
            return token | {'system': {'all': True}}
        if 'domain' in scope:
            return token | {'domain': _DOMAIN}
        return token | {
            'project': {'id': user.project_id, 'name': user.project, 'domain': _DOMAIN}
        }


def _timestamp(moment):
    return moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')


def _service(kind, name, url):
    return {
        'type': kind,
        'name': name,
        'id': uuid.uuid4().hex,
        'endpoints': [
            {
                'id': uuid.uuid4().hex,
                'interface': interface,
                'region': 'RegionOne',
                'region_id': 'RegionOne',
                'url': url,
            }
            for interface in ('public', 'internal', 'admin')
        ],
    }


class _Handler(server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # Send headers and body in one segment: no client waits for an ack.
    wbufsize = -1

    def do_GET(self):
        path = self.path.partition('?')[0].rstrip('/')
        if path == '':
            self._answer(300, {'versions': {'values': [self.keystone.versions()]}})
        elif path == '/v3':
            self._answer(200, {'version': self.keystone.versions()})
        elif path == '/v3/auth/tokens':
            self._answer_or_refuse(self._validate)
        else:
            self._answer(404)

    def do_POST(self):
        length = int(self.headers.get('Content-Length', 0))
        self._body = json.loads(self.rfile.read(length))
        if self.path == '/v3/auth/tokens':
            self._answer_or_refuse(self._authenticate)
        else:
            self._answer(404)

    def _validate(self):
        subject = self.headers.get('X-Subject-Token')
        token = self.keystone.validate(self.headers.get('X-Auth-Token'), subject)
        self._answer(200, {'token': token}, subject)

    def _authenticate(self):
        token, described = self.keystone.authenticate(self._body['auth'])
        self._answer(201, {'token': described}, token)

    def _answer_or_refuse(self, answer):
        try:
            answer()
        except Refused as refused:
            code = refused.args[0]
            self._answer(
                code,
                {'error': {'code': code, 'title': 'Refused', 'message': 'Refused.'}},
            )

    def _answer(self, code, body=None, token=None):
        data = json.dumps(body or {}).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        if token:
            self.send_header('X-Subject-Token', token)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *args):
        """Log nothing: failed tests show what the clients saw."""
