"""The protocols of rows name columns that their statements select."""

import types
import typing

import pytest
import sqlalchemy as sa

from manila_lite.db import models, rows
from manila_lite.db.queries import messages
from manila_lite.db.queries.access import (
    locks,
    share_rules,
    snapshot_rules,
    views as rule_views,
)
from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.queries.quotas import quotas
from manila_lite.db.queries.recovery import figures, recovery
from manila_lite.db.queries.replicas import replicas, updates
from manila_lite.db.queries.servers import (
    idle_servers,
    migrations,
    share_servers,
    views as server_views,
)
from manila_lite.db.queries.services import pools, services
from manila_lite.db.queries.shares import clone_sources, instances, shares
from manila_lite.db.queries.snapshots import exports, snapshots, views as snapshot_views
from manila_lite.db.queries.types import group_types, types as share_types

SELECTED = [
    (rows.AccessRuleRow, share_rules.RULES._of_instance),
    (rows.AccessRuleRow, snapshot_rules.RULES._of_instance),
    (rows.AccessRuleTarget, rule_views._ONE),
    (rows.AllocationRow, share_servers._ALLOCATIONS),
    (rows.ChargedRow, snapshots._ONE),
    (rows.ChargedShareRow, instances._FULL),
    (rows.CloneSourceRow, clone_sources._LOCK_SHARED),
    (rows.ExpiredShareRow, shares._EXPIRED),
    (rows.ExportLocationRow, instances._EXPORTS),
    (rows.StatusCountRow, figures._STATUSES),
    (rows.WorkCountRow, figures._WORK),
    (rows.ServicePoolRow, figures._SERVICES),
    (rows.ProjectQuotaRow, figures._QUOTAS),
    (rows.VisibilityLockRow, locks._HIDING),
    (rows.IdStatusRow, instances._page(('available', 'ensuring'))),
    (rows.InFlightRow, recovery._in_flight('share_instance')),
    (rows.InFlightRow, recovery._in_flight('snapshot_access_rule')),
    (rows.InstanceHostRow, share_rules._HOSTS),
    (rows.InstanceRow, instances._BY_IDS),
    (rows.InstanceRow, instances._FULL),
    (rows.LatestMigrationRow, migrations._LATEST),
    (rows.LivenessRow, services._ONE),
    (rows.LockableRow, locks._LOCK_RULE),
    (rows.LockableRow, locks._LOCK_SHARE),
    (rows.MessageRow, messages._GET),
    (rows.MessageShareRow, messages._SHARE_OF),
    (rows.MessageSnapshotRow, messages._SNAPSHOT_OF),
    (rows.MigratingSnapshotRow, migrations._SNAPSHOTS),
    (rows.MigrationRow, migrations._OPEN),
    (rows.MountableInstanceRow, snapshot_rules._LOCK_INSTANCES_SHARED),
    (rows.NetworkGroupRow, share_networks._SHARE_GROUPS),
    (rows.NetworkInstanceRow, share_networks._SHARE_INSTANCES),
    (rows.NetworkServerRow, share_networks._SERVERS),
    (rows.NetworkSubnetRow, migrations._NETWORKS),
    (rows.OwnedInstanceRow, instances._DELETING_FAILED),
    (rows.PoolAllocationRow, pools._ALLOCATIONS),
    (rows.PoolReportRow, pools._REPORTS),
    (rows.PoolRow, pools._LIST),
    (rows.ProjectUsageRow, quotas._ALL_USAGES),
    (rows.RecoveryLogRow, sa.select(recovery.LOG)),
    (rows.ReplicaIdRow, updates._PAGE),
    (rows.ReplicaRow, replicas._LOCK_INSTANCES),
    (rows.ReplicaRuleRow, replicas._RULES_OF),
    (rows.ReplicaTarget, replicas._TARGET),
    (rows.ResourceLockRow, locks.RECORDS.selected_by_id),
    (rows.RuleInstanceRow, share_rules._LOCK_INSTANCES),
    (rows.RuleMappingRow, share_rules._MAPPED),
    (rows.ScopeUsageRow, quotas._USAGES),
    (rows.SecurityServiceRow, security_services.RECORDS.selected_by_id),
    (rows.ServerIdRow, idle_servers._IDLE),
    (rows.ServerShareRow, migrations._WITH_SHARES),
    (rows.ServerTarget, server_views._ONE),
    (rows.ServiceRow, services._ONE),
    (rows.ShareNetworkRow, share_networks.RECORDS.selected_by_id),
    (rows.ShareServerRow, share_servers._GET),
    (rows.ShareTarget, shares._TARGET),
    (rows.SnapshotExportLocationRow, exports._OF_INSTANCE),
    (rows.SnapshotInstanceRow, snapshots._ONE),
    (rows.SnapshotInstanceViewRow, snapshot_views._ONE_INSTANCE),
    (rows.SnapshotParentRow, snapshots._PARENT),
    (rows.SnapshotRuleRow, snapshot_rules._ON_SHARE_INSTANCE),
    (rows.SnapshotTarget, snapshots._TARGET),
    (rows.StuckRow, recovery._stuck('share_instance', True, False)),
    (rows.StuckRow, recovery._stuck('share_network', False, False)),
    (rows.StuckRow, recovery._stuck('snapshot_access_rule', True, True)),
    (rows.SubnetRow, sa.select(share_servers.SUBNET)),
    (rows.SubnetServerRow, subnets._SERVERS),
    (rows.TypeAccessRow, group_types.TABLES._accesses),
    (rows.TypeAccessRow, share_types.TABLES._accesses),
    (rows.UsageRow, sa.select(quotas.USAGE)),
    (rows.ZoneRow, sa.select(services.ZONE)),
]

# Null only for rows that the readers of these protocols never see.
NEVER_NULL = {
    'host',
    'instance_host',
    'replica_state',
    'replication_type',
    'scheduled_to_be_deleted_at',  # the query compares it
    'share_server_id',
    'share_type_id',
    'access_level',
}


def _hints(protocol):
    """Return the Python type of each column and whether it may be null."""
    for name, hint in typing.get_type_hints(protocol).items():
        kinds = set(typing.get_args(hint)) or {hint}
        yield name, kinds - {types.NoneType}, types.NoneType in kinds


@pytest.mark.parametrize(
    'protocol, statement', SELECTED, ids=[protocol.__name__ for protocol, _ in SELECTED]
)
def test_the_statement_selects_every_column(protocol, statement):
    selected = {column.key for column in statement.selected_columns}
    assert {name for name, *_ in _hints(protocol)} - selected == set()


@pytest.mark.parametrize(
    'protocol, statement', SELECTED, ids=[protocol.__name__ for protocol, _ in SELECTED]
)
def test_the_types_are_those_of_the_columns(protocol, statement):
    columns = {column.key: column for column in statement.selected_columns}
    for name, kinds, may_be_null in _hints(protocol):
        column = columns[name]
        if not isinstance(column.type, sa.types.NullType):
            assert kinds == {column.type.python_type}, name
        bases = list(column.base_columns)  # several in a union
        base = bases[0] if len(bases) == 1 else None
        if isinstance(base, sa.Column) and base.table.name in _TABLES:
            assert may_be_null or not base.nullable or name in NEVER_NULL, name


_TABLES = models.metadata.tables
