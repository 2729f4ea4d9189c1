"""Targets: the rows that URLs and bodies name, if visible to the caller.

What is invisible to the caller is not found, so that the response does not
reveal that it exists.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import inspect
import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.groups import share_groups, snapshots as group_snapshots
from manila_lite.db.queries.networks import security_services, share_networks
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.servers import views as server_views
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots, views as snapshot_views
from manila_lite.db.session import Database, Session
from manila_lite.states import snapshot_instance
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS

Row = typing.TypeVar('Row')


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


@dataclasses.dataclass(frozen=True)
class TargetKind(typing.Generic[Row]):
    """How the rows of a resource are read, and which of them the caller sees.

    `id_key` is the parameter of the error, and of the route unless that has
    another `variable`. A `policy` is checked before the row is read, so that
    a 404 reveals nothing.
    """

    read: Callable[[Session, str], Row]
    not_found: type[exception.NotFound]
    id_key: str
    is_visible: Callable[[RequestContext, typing.Any], bool] = is_of_project
    policy: str | None = None
    variable: str | None = None

    def get(self, db: Database, ctx: RequestContext, id: str) -> Row:
        """Return the row; raises NotFound if the caller does not see it."""
        if self.policy:
            ctx.authorize(self.policy)
        row = db.read(self.read, id)
        if not self.is_visible(ctx, row):
            named: dict[str, typing.Any] = {self.id_key: id}
            raise self.not_found(**named)
        return row

    @property
    def loader(self) -> Callable[..., Row]:
        """A method `target` for controllers of such rows."""

        def target(controller: wsgi.Controller, req: wsgi.Request, id: str) -> Row:
            return self.get(controller.services.db, req.ctx, id)

        names = ('self', 'req', self.variable or self.id_key)
        target.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for name in names
            ]
        )
        return target


def _is_rule_visible(ctx: RequestContext, row: rows.AccessRuleTarget) -> bool:
    return is_of_project(ctx, row) and is_share_visible(ctx, row)


def _sees_all(ctx: RequestContext, row: object) -> bool:
    return True


SHARE = TargetKind(
    shares.get_target, exception.ShareNotFound, 'share_id', is_share_visible
)
SHARE_INSTANCE = TargetKind(
    share_instances.get,
    exception.ShareInstanceNotFound,
    'share_instance_id',
    _sees_all,
    policy='share_instance:show',
)
ACCESS_RULE = TargetKind(
    access_views.get_target,
    exception.ShareAccessNotFound,
    'access_id',
    _is_rule_visible,
)
SNAPSHOT = TargetKind(
    snapshots.get_target,
    exception.ShareSnapshotNotFound,
    'snapshot_id',
    is_snapshot_visible,
)
SNAPSHOT_INSTANCE = TargetKind(
    snapshot_views.get_instance,
    exception.SnapshotInstanceNotFound,
    'snapshot_instance_id',
    _sees_all,
    policy='share_snapshot_instance:show',
)
REPLICA = TargetKind(
    replicas.get_target,
    exception.ShareReplicaNotFound,
    'replica_id',
    is_replica_visible,
    variable='share_replica_id',
)
NETWORK = TargetKind(
    share_networks.get_target, exception.ShareNetworkNotFound, 'share_network_id'
)
SECURITY_SERVICE = TargetKind(
    security_services.get, exception.SecurityServiceNotFound, 'security_service_id'
)
SERVER = TargetKind(
    server_views.get_target,
    exception.ShareServerNotFound,
    'share_server_id',
    _sees_all,
    policy='share_server:show',
)
GROUP = TargetKind(share_groups.get, exception.ShareGroupNotFound, 'share_group_id')
GROUP_SNAPSHOT = TargetKind(
    group_snapshots.get, exception.ShareGroupSnapshotNotFound, 'share_group_snapshot_id'
)
BACKUP = TargetKind(share_backups.get, exception.ShareBackupNotFound, 'backup_id')


@contextlib.contextmanager
def named_in_body(field: str | None = None) -> Iterator[None]:
    """Raise InvalidInput if what a body names is not found, as published."""
    try:
        yield
    except exception.NotFound as error:
        reason = f'{field}: {error.msg}' if field else error.msg
        raise exception.InvalidInput(reason=reason) from error


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
