"""Zones, extensions, and the limits of a project."""

import typing

from manila_lite import exception
from manila_lite.api import paging, wsgi
from manila_lite.api.fields import Field, FieldValue, fields
from manila_lite.db.queries.quotas.quotas import Scope
from manila_lite.db.queries.services import services
from manila_lite.quota import sets

ITEM = fields(Field('id'), Field('name'), Field('created_at'), Field('updated_at'))


class AvailabilityZonesController(wsgi.Controller):
    @wsgi.method(
        'availability_zone:index',
        answer={'availability_zones': [ITEM]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List all zones by name."""
        rows = self.services.db.read(services.list_zones)
        items = ITEM.many(req.minor)(rows)
        return {'availability_zones': paging.behind_marker(req, items)}


class ExtensionsController(wsgi.Controller):
    @wsgi.method(wsgi.OPEN, answer={'extensions': list[dict]})
    def index(self, req: wsgi.Request) -> dict:
        """List the extensions."""
        return {'extensions': []}

    @wsgi.method(wsgi.OPEN, answer={'extension': dict})
    def show(self, req: wsgi.Request, alias: str) -> dict:
        """Raise ExtensionNotFound: every alias is unknown."""
        raise exception.ExtensionNotFound(alias=alias)


# fmt: off
_WORDS = (
    # resource,              in names of fields,     since
    ('shares',                'Shares',              '2.0'),
    ('gigabytes',             'ShareGigabytes',      '2.0'),
    ('snapshots',             'ShareSnapshots',      '2.0'),
    ('snapshot_gigabytes',    'SnapshotGigabytes',   '2.0'),
    ('share_networks',        'ShareNetworks',       '2.0'),
    ('share_replicas',        'ShareReplicas',       '2.53'),
    ('replica_gigabytes',     'ReplicaGigabytes',    '2.53'),
    ('share_groups',          'ShareGroups',         '2.58'),
    ('share_group_snapshots', 'ShareGroupSnapshots', '2.58'),
    ('backups',               'ShareBackups',        '2.80'),
    ('backup_gigabytes',      'BackupGigabytes',     '2.80'),
)
# fmt: on

ABSOLUTE = fields(
    *(
        Field(name, FieldValue(f'row[{resource!r}].{part}'), since=since, shape=int)
        for resource, word, since in _WORDS
        for name, part in ((f'maxTotal{word}', 'limit'), (f'total{word}Used', 'in_use'))
    )
)


class LimitsController(wsgi.Controller):
    @wsgi.method(wsgi.OPEN, answer={'limits': {'rate': list, 'absolute': ABSOLUTE}})
    def index(self, req: wsgi.Request) -> dict:
        """Show the limits to every member; there are no rate limits."""
        project_id = typing.cast(str, req.ctx.project_id)
        found = self.services.db.read(
            sets.show_usage, self.services.limits, Scope(project_id)
        )
        return {'limits': {'rate': [], 'absolute': ABSOLUTE.function(req.minor)(found)}}
