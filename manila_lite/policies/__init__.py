"""Policy rules: one list per resource."""

import itertools

from manila_lite.policies import api_description
from manila_lite.policies import availability_zone
from manila_lite.policies import base
from manila_lite.policies import identity
from manila_lite.policies import message
from manila_lite.policies import qos_type
from manila_lite.policies import qos_type_specs
from manila_lite.policies import quota_class_set
from manila_lite.policies import quota_set
from manila_lite.policies import recovery
from manila_lite.policies import resource_lock
from manila_lite.policies import scheduler_stats
from manila_lite.policies import security_service
from manila_lite.policies import service
from manila_lite.policies import share
from manila_lite.policies import share_access_metadata
from manila_lite.policies import share_access_rule
from manila_lite.policies import share_backup
from manila_lite.policies import share_export_location
from manila_lite.policies import share_group
from manila_lite.policies import share_group_snapshot
from manila_lite.policies import share_group_type
from manila_lite.policies import share_group_types_spec
from manila_lite.policies import share_instance
from manila_lite.policies import share_instance_export_location
from manila_lite.policies import share_network
from manila_lite.policies import share_network_subnet
from manila_lite.policies import share_replica
from manila_lite.policies import share_replica_export_location
from manila_lite.policies import share_server
from manila_lite.policies import share_snapshot
from manila_lite.policies import share_snapshot_export_location
from manila_lite.policies import share_snapshot_instance
from manila_lite.policies import share_snapshot_instance_export_location
from manila_lite.policies import share_transfer
from manila_lite.policies import share_type
from manila_lite.policies import share_types_extra_spec

_RESOURCES = (
    base,
    api_description,
    availability_zone,
    scheduler_stats,
    service,
    quota_set,
    quota_class_set,
    share,
    share_instance,
    share_snapshot,
    share_snapshot_instance,
    share_type,
    share_types_extra_spec,
    share_backup,
    share_group,
    share_group_snapshot,
    share_group_type,
    share_group_types_spec,
    qos_type,
    qos_type_specs,
    share_access_rule,
    share_access_metadata,
    share_export_location,
    share_instance_export_location,
    share_snapshot_export_location,
    share_snapshot_instance_export_location,
    identity,
    message,
    recovery,
    resource_lock,
    share_network,
    share_network_subnet,
    security_service,
    share_server,
    share_replica,
    share_replica_export_location,
    share_transfer,
)


def list_rules():
    """Return all rules with defaults, for the enforcer and the generator."""
    return list(
        itertools.chain.from_iterable(
            resource.RULES for resource in _RESOURCES
        )
    )
