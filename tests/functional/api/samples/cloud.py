"""A cloud with one resource of every kind, and clients for all personas.

Nothing runs by itself: the work of a request stays pending, and
`idle_share` makes the share ready for the next request.
"""

import functools
import pathlib
import typing

import sqlalchemy as sa

from manila_lite import messages
from manila_lite.db.models import (
    engine,
    quotas,
    services as service_models,
    shares,
    snapshots,
)
from manila_lite.db.queries.services import incarnations
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.session import Session
from tests.functional.api.samples.backups import SampleBackups
from tests.functional.api.samples.groups import GROUP_TYPE, SampleGroups
from tests.functional.api.samples.replicas import SampleReplicas
from tests.functional.api.samples.requests import (
    ADMINS,
    PERSONAS,
    TENANT,
    SampleRequests,
)
from tests.functional.api.samples.servers import SampleServers
from tests.functional.api.samples.transfers import SampleTransfers
from tests.support import databases
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud
from tests.support.rows import INSTANCE

_USAGE = quotas.QuotaUsage.__table__

GROUP = '44444444-4444-4444-8444-444444444444'
SERVICE = {'host': 'node@alpha', 'binary': 'manila-share'}
DOWN_HOST = 'node@silent'
LARGEST_SHARE = 500
"""Limit of one share, in GiB."""
SNAPSHOT_GIGABYTES = 1_000_000
"""Limit of the snapshots of a project, in GiB."""
REPLICA_GIGABYTES = 1_000_000
"""Limit of the replicas of a project, in GiB."""

_CONF = f"""
default_share_group_type = {GROUP_TYPE}
admin_only_metadata = __sealed
admin_only_el_metadata = preferred
[quota]
shares = 100000
gigabytes = 1000000
per_share_gigabytes = {LARGEST_SHARE}
snapshots = 100000
snapshot_gigabytes = {SNAPSHOT_GIGABYTES}
share_networks = 100000
share_groups = 100000
share_group_snapshots = 100000
backups = 100000
backup_gigabytes = 1000000
share_replicas = 100000
replica_gigabytes = {REPLICA_GIGABYTES}
"""


class SampleCloud(
    SampleRequests,
    SampleBackups,
    SampleGroups,
    SampleReplicas,
    SampleServers,
    SampleTransfers,
):
    """See the module docstring."""

    def __init__(self, folder: pathlib.Path, extra_conf: str = ''):
        self.cloud = Cloud(folder, extra_conf=_CONF + extra_conf, prepared=True)
        self.apis = {
            name: ApiClient(self.cloud, project=project, roles=roles, user=name)
            for name, (project, roles) in PERSONAS.items()
        }
        self.admin, self.member = self.apis['admin'], self.apis['member']
        self.__dict__ |= self.cloud.prepare(self._fill, 'sample')
        self._image = databases.SqliteImage(self.cloud.url)
        self._read_rows = functools.lru_cache(maxsize=1)(self._rows_of)

    def _fill(self) -> dict[str, str | int]:
        """Create all resources; return what was set by that."""
        given = set(self.__dict__)
        self._types = self._managed = self._clients = 0
        self._add_down_service()
        (
            self.share,
            self.spare_share,
            self.grouped_share,
            self.replicated_share,
            self.locked_share,
            self.migrating_share,
            self.spare_replicated_share,
            self.oversized_replicated_share,
            self.offered_share,
        ) = (
            self.member.create(size=2, metadata={'color': 'red'})['id']
            for _ in range(9)
        )
        self.cloud.settle()
        self.message, _ = (self.new_message(project) for project in (TENANT, ADMINS))
        self.minimal_type = self.new_type(public=True)
        self.private_type = self.new_type()
        self.grant_type_access(self.private_type, TENANT)
        self.public_group_type = self.new_group_type(public=True)
        self.private_group_type = self.new_group_type()
        self.qos_type = self.new_qos_type()
        self.grant_type_access(self.private_group_type, TENANT, '/share-group-types')
        self._update_share(self.grouped_share, share_group_id=GROUP)
        self._create_snapshots()
        self.make_networks()
        self.make_servers()
        self.make_replicas()
        self.cloud.db.write(
            _copy_snapshot, self.replicated_snapshot, self.oversized_replica
        )
        for api in (self.admin, self.member):
            self.new_lock(api)
        self.backup = self.new_backup()
        self.group = self.new_group()
        self.group_snapshot = self.new_group_snapshot()
        self.transfer = self.new_transfer(share_id=self.offered_share)
        return {
            name: value for name, value in self.__dict__.items() if name not in given
        }

    def rewind(self) -> None:
        """Restore the database as it was when the cloud was built."""
        self._image.restore()

    def close(self) -> None:
        self._image.close()
        self.cloud.db.dispose()

    def _add_down_service(self) -> None:
        """Register a service whose last heartbeat is one hour old."""
        self.cloud.db.write(
            incarnations.register,
            host=DOWN_HOST,
            binary='manila-share',
            topic='manila-share',
            zone='nova',
            incarnation='gone',
            down_time=60.0,
            enabled=True,
        )
        self.cloud.clock.advance(3600)
        self.cloud.scheduler.register()
        self.cloud.beat()

    def idle_share(self) -> str:
        """Return the share that requests may change, reset to available."""
        if self.admin.show(self.spare_share)['is_soft_deleted']:
            self.admin.act(self.spare_share, 'restore')
        self._update_share(self.spare_share, task_state=None)
        self.make_available(self.spare_share)
        return self.spare_share

    def make_available(self, share_id: str) -> None:
        """Undo what an earlier request began; a reset would be refused."""

        def write(session: Session) -> None:
            of_share = INSTANCE.c.share_id == share_id
            session.run(
                sa.delete(INSTANCE).where(of_share, INSTANCE.c.status == 'migrating_to')
            )
            session.run(sa.update(INSTANCE).where(of_share).values(status='available'))

        self.cloud.db.write(write)

    def _create_snapshots(self) -> None:
        """Create two snapshots of one share; requests may change the newer."""
        (
            self.snapshotted_share,
            self.spare_snapshot_source,
            self.oversized_snapshot_source,
        ) = (self.member.create(size=2)['id'] for _ in range(3))
        self.cloud.settle()
        self.replicated_snapshot = self.new_snapshot(self.oversized_replicated_share)
        self.snapshot = self.new_snapshot(name='first')
        self.spare_snapshot = self.new_snapshot(name='second')
        self._update_share(
            self.snapshotted_share,
            revert_to_snapshot_support=True,
            mount_snapshot_support=True,
        )
        self._insert_snapshot_export()
        # Afterwards nothing compares the sizes with the back end.
        self.cloud.settle()
        self._update_share(self.oversized_snapshot_source, size=SNAPSHOT_GIGABYTES + 1)
        self._update_share(self.oversized_replicated_share, size=REPLICA_GIGABYTES + 1)

    def new_snapshot(self, share_id: str | None = None, **body: object) -> str:
        """Create a snapshot of a share, `snapshotted_share` by default.

        It is made available without the back end; return its id.
        """
        share_id = share_id or self.snapshotted_share
        created = self.member.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': share_id, **body}},
            expect=202,
        )
        id = created.json['snapshot']['id']
        for path in (f'/shares/{share_id}', f'/snapshots/{id}'):
            self.admin.request(
                'POST',
                f'{path}/action',
                {'reset_status': {'status': 'available'}},
                expect=202,
            )
        return id

    def idle_snapshotted_share(self) -> str:
        """Return the share of the snapshots, ready to revert to the newer."""
        self.admin.act(self.snapshotted_share, 'reset_status', {'status': 'available'})
        self.idle_snapshot()
        return self.snapshotted_share

    def idle_snapshot_source(self) -> str:
        """Return the share that requests may take snapshots of."""
        self.admin.act(
            self.spare_snapshot_source, 'reset_status', {'status': 'available'}
        )
        return self.spare_snapshot_source

    def idle_snapshot(self, status: str = 'available') -> str:
        """Return the snapshot that requests may change, in this status."""
        self.admin.request(
            'POST',
            f'/snapshots/{self.spare_snapshot}/action',
            {'reset_status': {'status': status}},
            expect=202,
        )
        return self.spare_snapshot

    def instance_of_snapshot(self, snapshot_id: str) -> str:
        return self.admin.get(f'/snapshot-instances?snapshot_id={snapshot_id}')[
            'snapshot_instances'
        ][0]['id']

    def manage_body(self) -> dict:
        """Return a body that manages a share at a new path."""
        self._managed += 1
        return {
            'share': {
                'protocol': 'nfs',
                'export_path': f'10.0.0.1:/{self._managed}',
                'service_host': f'{SERVICE["host"]}#pool',
                'name': 'found',
            }
        }

    def manage_snapshot_body(self) -> dict:
        """Return a body that manages a snapshot at a new location."""
        self._managed += 1
        return {
            'snapshot': {
                'share_id': self.idle_snapshot_source(),
                'provider_location': f'at {self._managed}',
            }
        }

    def path_of(self, share_id: str) -> str:
        return self.admin.get(f'/shares/{share_id}/export_locations')[
            'export_locations'
        ][0]['path']

    def delete_share_rows(self, share_id: str) -> None:
        """Delete the rows of a share and its work."""
        instance = shares.ShareInstance.__table__
        share, work = shares.Share.__table__, engine.Work.__table__
        id = self.instance_of(share_id)
        self.cloud.db.write(
            lambda session: [
                session.run(sa.delete(table).where(column == value))
                for table, column, value in (
                    (work, work.c.resource_id, id),
                    (instance, instance.c.id, id),
                    (share, share.c.id, share_id),
                )
            ]
        )

    def clear_ensuring(self) -> None:
        """Clear the `ensuring` flag of all services."""
        table = service_models.Service.__table__
        self.cloud.db.write(
            lambda session: session.run(sa.update(table).values(ensuring=False))
        )

    def instance_of(self, share_id: str) -> str:
        return self.admin.get(f'/shares/{share_id}/instances')['share_instances'][0][
            'id'
        ]

    def export_of(self, share_id: str, admin_only: bool = False) -> str:
        locations = self.admin.get(f'/shares/{share_id}/export_locations')[
            'export_locations'
        ]
        return next(
            one['id'] for one in locations if one['is_admin_only'] is admin_only
        )

    def rule_body(self) -> dict:
        """Return a rule for a client that has no rule yet."""
        self._clients += 1
        high, low = divmod(self._clients, 256)
        return {'access_type': 'ip', 'access_to': f'10.0.{high}.{low}'}

    def new_rule(self, api: ApiClient | None = None) -> str:
        return (
            (api or self.member)
            .act(self.locked_share, 'allow_access', self.rule_body(), expect=200)
            .json['access']['id']
        )

    def new_snapshot_rule(self) -> str:
        return self.member.request(
            'POST',
            f'/snapshots/{self.snapshot}/action',
            {'allow_access': self.rule_body()},
            expect=202,
        ).json['snapshot_access']['id']

    def new_unmountable_snapshot(self) -> str:
        """Create a snapshot of a share without mountable snapshots."""
        created = self.member.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': self.idle_snapshot_source()}},
            expect=202,
        )
        return created.json['snapshot']['id']

    def export_of_snapshot(self) -> str:
        return self.admin.get(f'/snapshots/{self.snapshot}/export-locations')[
            'share_snapshot_export_locations'
        ][0]['id']

    def new_lock(self, api: ApiClient | None = None) -> str:
        """Create a lock of `locked_share`; return its id."""
        return (
            (api or self.member)
            .request('POST', '/resource-locks', self.lock_body(), expect=200)
            .json['resource_lock']['id']
        )

    def lock_body(self) -> dict:
        return {
            'resource_lock': {
                'resource_id': self.locked_share,
                'resource_type': 'share',
                'resource_action': 'delete',
                'lock_reason': 'it is mine',
            }
        }

    def type_body(self, public: bool = False) -> dict:
        """Return a body that creates a share type with a new name."""
        self._types += 1
        return {
            'share_type': {
                'name': f'type-{self._types}',
                'share_type_access:is_public': public,
                'extra_specs': {'driver_handles_share_servers': False},
            }
        }

    def new_type(self, public: bool = False) -> str:
        return self.admin.request(
            'POST', '/types', self.type_body(public), expect=200
        ).json['share_type']['id']

    def grant_type_access(
        self, type_id: str, project: str, path: str = '/types'
    ) -> None:
        """Give a project access to a private type."""
        self.admin.request(
            'POST',
            f'{path}/{type_id}/action',
            {'addProjectAccess': {'project': project}},
            expect=202,
        )

    def qos_type_body(self) -> dict:
        """Return a body that creates a QoS type with a new name."""
        self._types += 1
        return {
            'qos_type': {
                'name': f'qos-{self._types}',
                'description': 'fast',
                'specs': {'peak_iops': 5000, 'policy_type': 'adaptive'},
            }
        }

    def new_qos_type(self) -> str:
        return self.admin.request(
            'POST', '/qos-types', self.qos_type_body(), expect=200
        ).json['qos_type']['id']

    def new_message(self, project: str = TENANT) -> str:
        """Record a user message as for a failure; return its id."""
        self.cloud.db.write(
            messages.record,
            project_id=project,
            request_id='req-1',
            action=messages.Action.CREATE,
            resource=('SHARE', self.share),
            ttl=3600,
        )
        listed = ApiClient(self.cloud, project=project).get('/messages?limit=1')
        return listed['messages'][0]['id']

    def _update_share(self, share_id: str, **columns: object) -> None:
        """Overwrite columns of a share."""
        share = shares.Share.__table__
        self.cloud.db.write(
            lambda session: session.run(
                sa.update(share).where(share.c.id == share_id).values(**columns)
            )
        )

    def _insert_snapshot_export(self) -> None:
        instance_id = self.instance_of_snapshot(self.snapshot)
        self.cloud.db.write(
            snapshot_exports.replace,
            instance_id,
            [{'path': '10.0.0.1:/first', 'is_admin_only': False}],
        )

    def all_rows(self) -> dict[str, list[tuple]]:
        """Return all rows of all tables, to detect changes.

        Usage rows that are still zero are left out. Rows are read again
        only after a commit.
        """
        return self._read_rows(self._image.data_version())

    def _rows_of(self, data_version: int) -> dict[str, list[tuple]]:
        rows = self._image.rows()
        names = list(_USAGE.columns.keys())
        in_use, reserved = names.index('in_use'), names.index('reserved')
        rows[_USAGE.name] = [
            row for row in rows[_USAGE.name] if row[in_use] + row[reserved] > 0
        ]
        return rows


def _copy_snapshot(session: typing.Any, snapshot_id: str, replica_id: str) -> None:
    """Insert an instance of a snapshot for a replica."""
    table = snapshots.SnapshotInstance.__table__
    instance = session.first(sa.select(table).where(table.c.snapshot_id == snapshot_id))
    session.run(
        sa.insert(table),
        **dict(instance._mapping)
        | {'id': session.new_id(), 'share_instance_id': replica_id},
    )


def pending_work_kinds(session: typing.Any) -> list[str]:
    """Return the kinds of all pending work."""
    work = engine.Work.__table__
    return [
        row.kind for row in session.rows(sa.select(work.c.kind).order_by(work.c.id))
    ]
