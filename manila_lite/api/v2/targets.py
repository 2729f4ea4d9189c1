"""Targets: the rows that URLs and bodies name, if visible to the caller.

What is invisible to the caller is not found, so that the response does not
reveal that it exists.
"""

import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2.metadata import IdentifiedRow
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.groups import share_groups, snapshots as group_snapshots
from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.servers import views as server_views
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots, views as snapshot_views
from manila_lite.db.session import Database
from manila_lite.states import snapshot_instance
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS


class ProjectRow(typing.Protocol):
    """A resource of a project."""

    project_id: str


class HideableRow(rows.OwnedRow, typing.Protocol):
    """A share, replica or snapshot, which some of its statuses hide."""

    status: str


class PublicRow(HideableRow, typing.Protocol):
    """A share, or an access rule with columns of its share."""

    is_public: bool


def is_of_project(ctx: RequestContext, row: ProjectRow) -> bool:
    """Return whether a resource that is never public is visible."""
    return row.project_id == ctx.project_id or bool(ctx.is_admin)


def is_share_visible(ctx: RequestContext, row: PublicRow) -> bool:
    """Return whether the share is visible to the caller."""
    if row.project_id != ctx.project_id and not row.is_public and not ctx.is_admin:
        return False
    return row.status not in HIDDEN_FROM_TENANTS or sees_hidden(ctx, row)


def is_replica_visible(ctx: RequestContext, row: HideableRow) -> bool:
    """Return whether the replica is visible to the caller.

    Replicas of a public share are visible only to its own project.
    """
    return is_of_project(ctx, row) and (
        row.status not in HIDDEN_FROM_TENANTS or sees_hidden(ctx, row)
    )


def sees_hidden(ctx: RequestContext, row: rows.OwnedRow | None = None) -> bool:
    """Return whether the caller sees shares in deferred deletion."""
    return ctx.can('share:list_shares_in_deferred_deletion_states', row)


def is_snapshot_visible(ctx: RequestContext, row: HideableRow) -> bool:
    """Return whether the snapshot is visible to the caller."""
    return is_of_project(ctx, row) and (
        row.status not in snapshot_instance.HIDDEN_FROM_TENANTS
        or sees_hidden_snapshots(ctx, row)
    )


def sees_hidden_snapshots(
    ctx: RequestContext, row: rows.OwnedRow | None = None
) -> bool:
    """Return whether the caller sees snapshots in deferred deletion."""
    return ctx.can('share_snapshot:list_snapshots_in_deferred_deletion_states', row)


def get_share(db: Database, ctx: RequestContext, share_id: str) -> rows.ShareTarget:
    """Return the share; raises ShareNotFound."""
    row = db.read(shares.get_target, share_id)
    if not is_share_visible(ctx, row):
        raise exception.ShareNotFound(share_id=share_id)
    return row


def get_snapshot(
    db: Database, ctx: RequestContext, snapshot_id: str
) -> rows.SnapshotTarget:
    """Return the snapshot; raises ShareSnapshotNotFound."""
    row = db.read(snapshots.get_target, snapshot_id)
    if not is_snapshot_visible(ctx, row):
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
    return row


def get_network(
    db: Database, ctx: RequestContext, network_id: str
) -> rows.ShareNetworkRow:
    """Return the share network; raises ShareNetworkNotFound."""
    row = db.read(share_networks.get_target, network_id)
    if not is_of_project(ctx, row):
        raise exception.ShareNetworkNotFound(share_network_id=network_id)
    return row


def get_group(db: Database, ctx: RequestContext, group_id: str) -> rows.ShareGroupRow:
    """Return the share group; raises ShareGroupNotFound."""
    row = db.read(share_groups.get, group_id)
    if not is_of_project(ctx, row):
        raise exception.ShareGroupNotFound(share_group_id=group_id)
    return row


def get_group_snapshot(
    db: Database, ctx: RequestContext, snapshot_id: str
) -> rows.ShareGroupSnapshotRow:
    """Return the snapshot; raises ShareGroupSnapshotNotFound."""
    row = db.read(group_snapshots.get, snapshot_id)
    if not is_of_project(ctx, row):
        raise exception.ShareGroupSnapshotNotFound(share_group_snapshot_id=snapshot_id)
    return row


def get_backup(
    db: Database, ctx: RequestContext, backup_id: str
) -> rows.ShareBackupRow:
    """Return the share backup; raises ShareBackupNotFound."""
    row = db.read(share_backups.get, backup_id)
    if not is_of_project(ctx, row):
        raise exception.ShareBackupNotFound(backup_id=backup_id)
    return row


def usable_network_id(
    db: Database, ctx: RequestContext, network_id: str | None
) -> str | None:
    """Return the id of the network if the caller may put something on it.

    An empty id is None. Raises ShareNetworkNotFound.
    """
    if not network_id:
        return None
    row = db.read(share_networks.get_target, network_id)
    if not ctx.can('share_network:show', row):
        raise exception.ShareNetworkNotFound(share_network_id=network_id)
    return row.id


def get_security_service(
    db: Database, ctx: RequestContext, service_id: str
) -> rows.SecurityServiceRow:
    """Return the security service; raises SecurityServiceNotFound."""
    row = db.read(security_services.get, service_id)
    if not is_of_project(ctx, row):
        raise exception.SecurityServiceNotFound(security_service_id=service_id)
    return row


class ShareTargetController(wsgi.Controller):
    """Base of controllers whose target is a share."""

    def target(self, req: wsgi.Request, share_id: str) -> rows.ShareTarget:
        return get_share(self.services.db, req.ctx, share_id)


class ShareInstanceTargetController(wsgi.Controller):
    """Base of controllers whose target is a share instance."""

    def target(self, req: wsgi.Request, share_instance_id: str) -> rows.InstanceRow:
        # Checked before the row is read, so that a 404 reveals nothing.
        req.ctx.authorize('share_instance:show')
        return self.services.db.read(share_instances.get, share_instance_id)


class AccessRuleTargetController(wsgi.Controller):
    """Base of controllers whose target is a rule of the own project."""

    def target(self, req: wsgi.Request, access_id: str) -> rows.AccessRuleTarget:
        row = self.services.db.read(access_views.get_target, access_id)
        if not is_of_project(req.ctx, row) or not is_share_visible(req.ctx, row):
            raise exception.ShareAccessNotFound(access_id=access_id)
        return row


class SnapshotTargetController(wsgi.Controller):
    """Base of controllers whose target is a snapshot."""

    def target(self, req: wsgi.Request, snapshot_id: str) -> rows.SnapshotTarget:
        return get_snapshot(self.services.db, req.ctx, snapshot_id)


class SnapshotInstanceTargetController(wsgi.Controller):
    """Base of controllers whose target is a snapshot instance."""

    def target(
        self, req: wsgi.Request, snapshot_instance_id: str
    ) -> rows.SnapshotInstanceViewRow:
        # Checked before the row is read, so that a 404 reveals nothing.
        req.ctx.authorize('share_snapshot_instance:show')
        return self.services.db.read(snapshot_views.get_instance, snapshot_instance_id)


class ShareReplicaTargetController(wsgi.Controller):
    """Base of controllers whose target is a replica."""

    def target(self, req: wsgi.Request, share_replica_id: str) -> rows.ReplicaTarget:
        row = self.services.db.read(replicas.get_target, share_replica_id)
        if not is_replica_visible(req.ctx, row):
            raise exception.ShareReplicaNotFound(replica_id=share_replica_id)
        return row


class ShareNetworkTargetController(wsgi.Controller):
    """Base of controllers whose target is a share network."""

    def target(self, req: wsgi.Request, share_network_id: str) -> rows.ShareNetworkRow:
        return get_network(self.services.db, req.ctx, share_network_id)


class SubnetTargetController(ShareNetworkTargetController):
    """Base of controllers for the subnets of a network."""

    def subnet(self, network: IdentifiedRow, subnet_id: str) -> subnets.Subnet:
        return self.services.db.read(subnets.get, network.id, subnet_id)


class SecurityServiceTargetController(wsgi.Controller):
    """Base of controllers whose target is a security service."""

    def target(
        self, req: wsgi.Request, security_service_id: str
    ) -> rows.SecurityServiceRow:
        return get_security_service(self.services.db, req.ctx, security_service_id)


class ShareServerTargetController(wsgi.Controller):
    """Base of controllers whose target is a share server."""

    def target(self, req: wsgi.Request, share_server_id: str) -> rows.ServerTarget:
        # Checked before the row is read, so that a 404 reveals nothing.
        req.ctx.authorize('share_server:show')
        return self.services.db.read(server_views.get_target, share_server_id)


class GroupSnapshotTargetController(wsgi.Controller):
    """Base of controllers whose target is a snapshot of a share group."""

    def target(
        self, req: wsgi.Request, share_group_snapshot_id: str
    ) -> rows.ShareGroupSnapshotRow:
        return get_group_snapshot(self.services.db, req.ctx, share_group_snapshot_id)


class ShareBackupTargetController(wsgi.Controller):
    """Base of controllers whose target is a share backup."""

    def target(self, req: wsgi.Request, backup_id: str) -> rows.ShareBackupRow:
        return get_backup(self.services.db, req.ctx, backup_id)


class ShareGroupTargetController(wsgi.Controller):
    """Base of controllers whose target is a share group."""

    def target(self, req: wsgi.Request, share_group_id: str) -> rows.ShareGroupRow:
        return get_group(self.services.db, req.ctx, share_group_id)
