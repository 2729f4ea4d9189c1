"""Accept requests about backups of shares.

The data service makes a backup, or the driver of the share if the request has
options for it. The share is moved with the request, so that nothing else is
done with it until its content has been copied. A request moves the share
first and then the backup.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import orjson

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, insert_row
from manila_lite.host import Host
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.snapshots import backup_deltas
from manila_lite.rpc.contract import Client
from manila_lite.rpc.data import TOPIC as COPIES, BackupsRpc
from manila_lite.rpc.share import TOPIC as DRIVERS, DriverBackupsRpc
from manila_lite.share.operations.replication import guards as replica_guards
from manila_lite.share.operations.reset_events import RecordOperations
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work.admission import AdmissionControl, admission_controlled


@dataclasses.dataclass(eq=False)
class ShareBackups(RecordOperations):
    """Operations on share backups. Each method is one transaction.

    `copies` is the client of the data service, `drivers` that of the back
    ends that make backups themselves.
    """

    machine, records = SHARE_BACKUP, share_backups.RECORDS

    db: Database
    limits: DefaultLimits
    copies: Client[BackupsRpc]
    drivers: Client[DriverBackupsRpc]
    admission: AdmissionControl

    @admission_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        *,
        name: str | None = None,
        description: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Accept a backup of a share and return its id.

        With `options` the driver of the share makes it.
        """
        target = replica_guards.get_only_instance(session, share)
        fire(session, SHARE_INSTANCE, target.instance_id, 'back_up')
        # Behind the guard: nothing is done with the share meanwhile.
        instance = share_instances.get(session, target.instance_id)
        if instance.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        if shares.has_kept_snapshots(session, share.id):
            raise exception.InvalidShare(
                reason=f'share {share.id} has snapshots, or is in a snapshot '
                'of its share group; only a share without them can be backed '
                'up'
            )
        backup_type = options.get('backup_type') if options else None
        if share_backups.has_any_of_other_type(session, share.id, backup_type):
            raise exception.InvalidBackup(
                reason=f'share {share.id} has backups of another backup_type; '
                'all backups of a share have the same one'
            )
        owner = Owner(instance.project_id, ctx.user_id)
        charges.charge(session, owner, backup_deltas(instance.size), limits=self.limits)
        topic = DRIVERS if options else COPIES
        backup_id = session.new_id()
        insert_row(
            session,
            SHARE_BACKUP,
            'create',
            id=backup_id,
            share_id=share.id,
            project_id=owner.project_id,
            user_id=owner.user_id,
            name=name,
            description=description,
            size=instance.size,
            host=instance.host,
            topic=topic,
            backup_type=backup_type,
            backup_options=orjson.dumps(options).decode() if options else None,
            progress=0,
            restore_progress=0,
            availability_zone_id=instance.availability_zone_id,
            created_at=session.now,
        )
        self._work(topic, instance.host).create_backup(
            session, ctx, share_backup_id=backup_id
        )
        return backup_id

    def _work(self, topic: str, host: str | None) -> Client:
        """Return the client of the service that keeps a backup."""
        return self.drivers.on(host or '') if topic == DRIVERS else self.copies

    @transaction
    def restore(
        self,
        session: Session,
        ctx: RequestContext,
        backup: rows.ShareBackupRow,
        share: rows.ShareTarget,
    ) -> None:
        """Request that a share gets the content of a backup."""
        target = replica_guards.get_only_instance(session, share)
        fire(session, SHARE_INSTANCE, target.instance_id, 'restore_backup')
        instance = share_instances.get(session, target.instance_id)
        if instance.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        if instance.project_id != backup.project_id:
            # It has changed hands since the request was authorized.
            raise exception.InvalidShare(
                reason=f'share {share.id} belongs to another project'
            )
        if backup.topic == DRIVERS and not _is_same_back_end(
            backup.host, instance.host
        ):
            raise exception.InvalidShare(
                reason=f'share {share.id} is not on the back end that keeps '
                f'backup {backup.id}'
            )
        if instance.size < backup.size:
            raise exception.InvalidShare(
                reason=f'share {share.id} has {instance.size} GiB, and the '
                f'backup needs {backup.size} GiB'
            )
        fire(
            session,
            SHARE_BACKUP,
            backup.id,
            'restore',
            restore_progress=0,
            restore_position=None,
            restore_share_id=share.id,
        )
        self._work(backup.topic, backup.host).restore_backup(
            session, ctx, share_backup_id=backup.id
        )

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, backup: rows.ShareBackupRow
    ) -> None:
        """Request the deletion of a backup."""
        fire(session, SHARE_BACKUP, backup.id, 'delete')
        self._work(backup.topic, backup.host).delete_backup(
            session, ctx, share_backup_id=backup.id
        )


def _is_same_back_end(host: str | None, other: str | None) -> bool:
    """Whether two hosts are of one back end, be it in different pools."""
    return Host.parse(host or '').service_host == Host.parse(other or '').service_host
