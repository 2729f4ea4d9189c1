"""One service with a resource of every kind, and those who ask for them.

Nothing is carried out by itself: what a request has asked for stays owed,
and `idle` makes the share ready for the next request.
"""

import json
import pathlib
import typing

import sqlalchemy as sa
import webob

from manila_lite.api import versions
from manila_lite.db import models
from manila_lite.db.models import quotas
from manila_lite.db.models import shares
from tests.functional.api import published
from tests.support.cloud import Api
from tests.support.cloud import Cloud

_USAGE = quotas.QuotaUsage.__table__

ADMINS, TENANT, FOREIGN = 'ad' * 16, '7e' * 16, 'f0' * 16
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
        self.cloud = Cloud(folder, more=_CONF + more)
        self.apis = {
            name: Api(self.cloud, project=project, roles=roles, user=name)
            for name, (project, roles) in PERSONAS.items()}
        self.admin, self.member = self.apis['admin'], self.apis['member']
        self.share = self.new_share(size=2, metadata={'color': 'red'})
        self.spare = self.new_share(size=2)

    def new_share(self, **body: object) -> str:
        """A share of the tenant that is available."""
        share_id = self.member.create(**body)['id']
        self.cloud.settle()
        return share_id

    def idle(self) -> str:
        """The share that requests may change, ready for one."""
        if self.admin.show(self.spare)['is_soft_deleted']:
            self.admin.act(self.spare, 'restore')
        self.admin.act(self.spare, 'reset_status', {'status': 'available'})
        return self.spare

    def instance_of(self, share_id: str) -> str:
        return self.admin.get(f'/shares/{share_id}/instances')[
            'share_instances'][0]['id']

    def export_of(self, share_id: str, admin_only: bool = False) -> str:
        locations = self.admin.get(f'/shares/{share_id}/export_locations')[
            'export_locations']
        return next(one['id'] for one in locations
                    if one['is_admin_only'] is admin_only)

    def plant(self, share_id: str, **columns: object) -> None:
        """Make a share what a capability to come would make of it."""
        share = shares.Share.__table__
        self.cloud.db.write(lambda session: session.run(
            sa.update(share).where(share.c.id == share_id)
            .values(**columns)))

    def plant_replica(self, share_id: str) -> None:
        """Give a share a second copy, as replication would."""
        self.cloud.db.write(_copy_instance, share_id)

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
    table = shares.ShareInstance.__table__
    one = session.one(sa.select(table).where(table.c.share_id == share_id))
    session.run(sa.update(table).where(table.c.id == one.id)
                .values(replica_state='active'))
    session.run(sa.insert(table), **dict(one._mapping) | {
        'id': session.new_id(), 'replica_state': 'in_sync'})

