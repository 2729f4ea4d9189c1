"""One service with a resource of every kind, and those who ask for them.

Nothing is carried out by itself: what a request has asked for stays owed,
and `idle` makes the share ready for the next request.
"""

import json
import pathlib
import typing

import sqlalchemy as sa
import webob

from manila_lite import messages
from manila_lite.api import versions
from manila_lite.db import models
from manila_lite.db.models import engine
from manila_lite.db.models import quotas
from manila_lite.db.models import services as service_models
from manila_lite.db.models import shares
from manila_lite.db.queries import services
from tests.functional.api import published
from tests.support.cloud import Api
from tests.support.cloud import Cloud

_USAGE = quotas.QuotaUsage.__table__

ADMINS, TENANT, FOREIGN = 'ad' * 16, '7e' * 16, 'f0' * 16
GROUP = '44444444-4444-4444-8444-444444444444'
SERVICE = {'host': 'node@alpha', 'binary': 'manila-share'}
SILENT_HOST = 'node@silent'
LARGEST_SHARE = 500
"""GiB that one share may have."""

_CONF = f"""
admin_only_metadata = __sealed
admin_only_el_metadata = preferred
[quota]
shares = 100000
gigabytes = 1000000
per_share_gigabytes = {LARGEST_SHARE}
"""

PERSONAS = {
    'admin': (ADMINS, 'admin,member,reader'),
    'member': (TENANT, 'member,reader'),
    'reader': (TENANT, 'reader'),
    'guest': (TENANT, 'guest'),
    'foreign': (FOREIGN, 'member,reader'),
}
"""Project and roles; all but admin and foreign are of the share's."""


class Given(typing.NamedTuple):
    """What a request needs besides its operation.

    The body of an action is what stands below its name.
    """

    variables: dict[str, str]
    body: object = None
    query: str = ''


def given(body: object = None, query: str = '', **variables: str) -> Given:
    return Given(variables, body, query)


class World:
    """See the module."""

    def __init__(self, folder: pathlib.Path, more: str = ''):
        self._types = 0
        self.cloud = Cloud(folder, more=_CONF + more)
        self._add_silent_service()
        self.apis = {
            name: Api(self.cloud, project=project, roles=roles, user=name)
            for name, (project, roles) in PERSONAS.items()}
        self.admin, self.member = self.apis['admin'], self.apis['member']
        self.share, self.spare, self.grouped, self.replicated = (
            self.member.create(size=2, metadata={'color': 'red'})['id']
            for _ in range(4))
        self.cloud.settle()
        self.message, _ = (self.new_message(project)
                           for project in (TENANT, ADMINS))
        self.silent_type = self.new_type(public=True)
        self.private_type = self.new_type()
        self.share_type_with(self.private_type, TENANT)
        self._plant(self.grouped, share_group_id=GROUP)
        self.cloud.db.write(_copy_instance, self.replicated)

    def _add_silent_service(self) -> None:
        """A service that was heard of an hour ago for the last time."""
        self.cloud.db.write(
            services.register, host=SILENT_HOST, binary='manila-share',
            topic='manila-share', zone='nova', incarnation='gone',
            enabled=True)
        self.cloud.clock.advance(3600)
        self.cloud.scheduler.register()
        self.cloud.beat()

    def idle(self) -> str:
        """The share that requests may change, ready for one."""
        if self.admin.show(self.spare)['is_soft_deleted']:
            self.admin.act(self.spare, 'restore')
        self.admin.act(self.spare, 'reset_status', {'status': 'available'})
        return self.spare

    def calm(self) -> None:
        """Have no service be ensuring its shares."""
        table = service_models.Service.__table__
        self.cloud.db.write(lambda session: session.run(
            sa.update(table).values(ensuring=False)))

    def instance_of(self, share_id: str) -> str:
        return self.admin.get(f'/shares/{share_id}/instances')[
            'share_instances'][0]['id']

    def export_of(self, share_id: str, admin_only: bool = False) -> str:
        locations = self.admin.get(f'/shares/{share_id}/export_locations')[
            'export_locations']
        return next(one['id'] for one in locations
                    if one['is_admin_only'] is admin_only)

    def type_body(self, public: bool = False) -> dict:
        """The body that makes a share type of a new name."""
        self._types += 1
        return {'share_type': {
            'name': f'type-{self._types}',
            'share_type_access:is_public': public,
            'extra_specs': {'driver_handles_share_servers': False}}}

    def new_type(self, public: bool = False) -> str:
        return self.admin.request(
            'POST', '/types', self.type_body(public), expect=200,
        ).json['share_type']['id']

    def share_type_with(self, type_id: str, project: str) -> None:
        """Let a project use a private share type."""
        self.admin.request('POST', f'/types/{type_id}/action', {
            'addProjectAccess': {'project': project}}, expect=202)

    def new_message(self, project: str = TENANT) -> str:
        """A message as a failure leaves it; its id."""
        self.cloud.db.write(
            messages.record, project_id=project, request_id='req-1',
            action=messages.Action.CREATE, resource_type='SHARE',
            resource_id=self.share, ttl=3600,
            detail=messages.Detail.UNKNOWN_ERROR)
        listed = Api(self.cloud, project=project).get('/messages?limit=1')
        return listed['messages'][0]['id']

    def _plant(self, share_id: str, **columns: object) -> None:
        """Make a share what a capability to come would make of it."""
        share = shares.Share.__table__
        self.cloud.db.write(lambda session: session.run(
            sa.update(share).where(share.c.id == share_id)
            .values(**columns)))

    def plant_export(self, instance_id: str, path: str) -> None:
        """Export an instance at one more path."""
        export = shares.ExportLocation.__table__
        self.cloud.db.write(lambda session: session.run(
            sa.insert(export), id=session.new_id(), path=path,
            share_instance_id=instance_id, is_admin_only=False,
            created_at=session.now))

    def everything(self) -> dict[str, list[tuple]]:
        """All rows of all tables, to tell whether anything changed.

        A row that counts no usage yet is as good as none.
        """
        return self.cloud.db.read(lambda session: {
            table.name: [tuple(row) for row in session.rows(
                sa.select(table).where(*_TELLING.get(table.name, ())))]
            for table in models.metadata.sorted_tables})

    def ask(self, operation: published.Operation, what: Given,
            **how: typing.Any) -> typing.Any:
        """The answer to a request for the operation."""
        body = what.body
        if operation.action:
            body = {operation.action: body}
        if how.get('minor', 99) in operation.experimental:
            how['headers'] = {versions.EXPERIMENTAL_HEADER: 'true',
                              **how.get('headers', {})}
        return self.send(
            operation.method,
            operation.path.format(**what.variables) + what.query, body,
            **how)

    def send(self, method: str, path: str, body: object = None, *,
             by: str = 'admin', minor: int = 99, project: bool = False,
             raw: bytes | None = None, headers: dict | None = None,
             app: typing.Callable | None = None) -> typing.Any:
        """The answer; `project` puts the caller's project into the URL.

        `raw` is a body that is sent as it is, `app` another application
        than the usual.
        """
        if project:
            path = path.replace('/v2', f'/v2/{PERSONAS[by][0]}', 1)
        request = webob.Request.blank(path, method=method, headers={
            **self.apis[by].headers,
            versions.HEADER: published.text(minor)})
        if body is not None or raw is not None:
            request.body = json.dumps(body).encode() if raw is None else raw
            request.content_type = 'application/json'
        request.headers.update(headers or {})
        return request.get_response(app or self.cloud.app)


_TELLING = {_USAGE.name: (_USAGE.c.in_use + _USAGE.c.reserved > 0,)}


def _copy_instance(session: typing.Any, share_id: str) -> None:
    """Give a share a second copy, as replication would."""
    table = shares.ShareInstance.__table__
    one = session.one(sa.select(table).where(table.c.share_id == share_id))
    session.run(sa.update(table).where(table.c.id == one.id)
                .values(replica_state='active'))
    session.run(sa.insert(table), **dict(one._mapping) | {
        'id': session.new_id(), 'replica_state': 'in_sync'})



def work_kinds(session: typing.Any) -> list[str]:
    """The kinds of all work that is owed."""
    work = engine.Work.__table__
    return [row.kind for row in session.rows(
        sa.select(work.c.kind).order_by(work.c.id))]
