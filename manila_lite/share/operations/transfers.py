"""Accept requests to offer a share to another project, and to accept it.

The share is `awaiting_transfer` until the back end has carried out the
transfer, which then changes hands with its snapshots and its quota in one
transaction. A transaction here moves or locks the share instance first, and
then the transfer.
"""

import dataclasses
import datetime
import hashlib
import hmac
import secrets
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option, seconds
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves.access_rules import deny_all
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.shares import instances as share_instances, transfers
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_matching, insert_row
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.shares import reservation_of, usage_of
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc, ShareTransfersRpc
from manila_lite.share.operations.replication import guards as replica_guards
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_transfer import SHARE_TRANSFER, TransferStatus
from manila_lite.work.admission import AdmissionControl

RESOURCE_TYPE = 'share'

_FIRST_PAUSE = 0.02
"""Seconds; each further pause is twice as long."""


class NewTransfer(typing.NamedTuple):
    """A transfer just created, with the key, which is not stored."""

    id: str
    auth_key: str
    display_name: str | None
    resource_type: str
    resource_id: str
    source_project_id: str
    destination_project_id: None
    created_at: datetime.datetime
    expires_at: datetime.datetime


@dataclasses.dataclass(eq=False)
class ShareTransfers:
    """Operations on share transfers."""

    db: Database
    limits: DefaultLimits
    work: Client[ShareTransfersRpc]
    access: Client[AccessRpc]
    admission: AdmissionControl
    retention: Annotated[datetime.timedelta, Option('transfer_retention_time', seconds)]
    wait: Annotated[float, Option('work.transfer_wait')]
    salt_length: Annotated[int, Option('share_transfer_salt_length')]
    key_length: Annotated[int, Option('share_transfer_key_length')]

    # Offer

    def create(
        self, ctx: RequestContext, share: rows.ShareTarget, name: str | None = None
    ) -> NewTransfer:
        """Offer a share to the holder of the key that this returns."""
        return self._create(
            ctx, share, name, _random(self.key_length), _random(self.salt_length)
        )

    @transaction
    def _create(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        name: str | None,
        key: str,
        salt: str,
    ) -> NewTransfer:
        target = replica_guards.get_only_instance(session, share)
        fire(session, SHARE_INSTANCE, target.instance_id, 'offer')
        # Behind the guard: no lock, snapshot or replica can be added now.
        instance = share_instances.get(session, target.instance_id)
        _refuse_not_transferable(instance)
        _refuse_locked(session, share.id)
        _refuse_backups(session, share.id)
        usage_of(session, instance)
        # Left by an administrator's reset of the status.
        fire_matching(session, SHARE_TRANSFER, 'replaced', {'resource_id': share.id})
        transfer = NewTransfer(
            id=session.new_id(),
            auth_key=key,
            display_name=name,
            resource_type=RESOURCE_TYPE,
            resource_id=share.id,
            source_project_id=instance.project_id,
            destination_project_id=None,
            created_at=session.now,
            expires_at=session.now + self.retention,
        )
        values = transfer._asdict()
        del values['auth_key']
        insert_row(
            session,
            SHARE_TRANSFER,
            'create',
            **values,
            salt=salt,
            crypt_hash=_hash(salt, key),
            clear_access_rules=False,
        )
        return transfer

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, transfer: rows.TransferRow
    ) -> None:
        """Withdraw the offer; the share becomes available again."""
        fire(session, SHARE_INSTANCE, transfer.instance_id, 'withdraw_offer')
        fire(session, SHARE_TRANSFER, transfer.id, 'withdraw')

    # Accept

    def accept(
        self,
        ctx: RequestContext,
        transfer_id: str,
        key: str,
        *,
        clear_access_rules: bool = False,
    ) -> None:
        """Accept a share for the project of the caller.

        Waits a few seconds for the back end, as clients expect to find the
        share in their project; it is carried out in any case. Raises
        ShareTransferRefused without the key, and ShareTransferFailed if the
        back end fails meanwhile.
        """
        offer = self.db.read(transfers.find_offer, transfer_id)
        salt, stored = (offer.salt, offer.crypt_hash) if offer else ('', _hash('', ''))
        is_right = hmac.compare_digest(_hash(salt, key), stored)
        if offer is None or not is_right:
            raise exception.ShareTransferRefused()
        self.admission.check_backend(offer.host)
        self._accept(ctx, offer, clear_access_rules)
        self._wait(offer.id)

    @transaction
    def _accept(
        self,
        session: Session,
        ctx: RequestContext,
        offer: rows.OfferRow,
        clear_access_rules: bool,
    ) -> None:
        if offer.expires_at <= session.now:
            raise exception.ShareTransferRefused()
        # Requests lock the work on rules first, and then the instances.
        has_rules = clear_access_rules and bool(
            share_rules.list_for_instance(session, offer.instance_id)
        )
        if has_rules:
            self.access.on(offer.host).sync_access(
                session, ctx, instance_id=offer.instance_id
            )
        _require_offered(snapshots.lock_share_instance(session, offer.instance_id))
        fire(
            session,
            SHARE_TRANSFER,
            offer.id,
            'accept',
            destination_project_id=ctx.project_id,
            destination_user_id=ctx.user_id,
            clear_access_rules=clear_access_rules,
        )
        instance = share_instances.get(session, offer.instance_id)
        _refuse_locked(session, instance.share_id)
        _require_usable_type(session, ctx, instance)
        project_id = typing.cast(str, ctx.project_id)
        charges.charge(
            session,
            Owner(project_id, ctx.user_id, instance.share_type_id),
            reservation_of(session, instance, project_id),
            limits=self.limits,
            reserve=True,
            size=instance.size,
        )
        if has_rules:
            deny_all(session, offer.instance_id)
        self.work.on(instance.host).accept_transfer(
            session, ctx, share_instance_id=instance.id, transfer_id=offer.id
        )

    def _wait(self, transfer_id: str) -> None:
        """Wait for the work; raises ShareTransferFailed if it fails."""
        pause, left = _FIRST_PAUSE, self.wait
        while left > 0:
            self.db.sleep(pause)
            status = self.db.read(transfers.find_status, transfer_id)
            if status == TransferStatus.PENDING:
                raise exception.ShareTransferFailed()
            if status is None:
                return
            pause, left = 2 * pause, left - pause


def _random(length: int) -> str:
    """Return so many random hexadecimal digits."""
    return secrets.token_hex((length + 1) // 2)[:length]


def _hash(salt: str, key: str) -> str:
    # A key is random: nothing is gained by a function that is slow.
    return hmac.digest(salt.encode(), key.encode(), hashlib.sha256).hex()


def _refuse_not_transferable(instance: rows.InstanceRow) -> None:
    if instance.is_soft_deleted:
        raise exception.ShareSoftDeleted(share_id=instance.share_id)
    for column, what in (
        ('share_network_id', 'on a share network'),
        ('share_server_id', 'on a share server'),
        ('share_group_id', 'in a share group'),
    ):
        if getattr(instance, column):
            raise exception.InvalidShare(
                reason=f'share {instance.share_id} is {what} and cannot be transferred'
            )
    if instance.project_id in (instance.mount_point_name or ''):
        raise exception.InvalidShare(
            reason='the mount point name of the share has the id of its '
            'project, so that the share cannot be transferred'
        )


def _refuse_backups(session: Session, share_id: str) -> None:
    """Refuse a share with backups, which stay with the project."""
    if share_backups.has_any(session, share_id):
        raise exception.InvalidShare(
            reason=f'share {share_id} has backups and cannot be transferred; '
            'delete them first'
        )


def _refuse_locked(session: Session, share_id: str) -> None:
    """Refuse a share with locks, which its next owner could not remove."""
    if transfers.has_resource_locks(session, share_id):
        raise exception.InvalidShare(
            reason='the share or one of its access rules has resource locks '
            'and cannot be transferred; remove them first'
        )


def _require_offered(status: str | None) -> None:
    if status != InstanceStatus.AWAITING_TRANSFER:
        raise exception.InvalidShare(
            reason='the share does not await a transfer any more'
        )


def _require_usable_type(
    session: Session, ctx: RequestContext, instance: rows.InstanceRow
) -> None:
    if instance.share_type_id and not share_types.find_usable(
        session, instance.share_type_id, ctx.project_id, ctx.is_admin
    ):
        raise exception.InvalidShare(
            reason='the project has no access to the type of the share'
        )
