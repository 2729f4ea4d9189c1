"""The values that resource locks use on the wire."""

from manila_lite.states.access_rule import DENIED, RuleState
from manila_lite.states.share_instance import InstanceStatus


class ResourceAction:
    """The action that a lock forbids."""

    DELETE = 'delete'
    SHOW = 'show'


class ResourceType:
    """The kinds of resources that can be locked."""

    SHARE = 'share'
    ACCESS_RULE = 'access_rule'


class LockContext:
    """The capacity in which the creator of a lock acted."""

    USER = 'user'
    ADMIN = 'admin'
    SERVICE = 'service'


ACTIONS = {
    ResourceType.SHARE: (ResourceAction.DELETE,),
    ResourceType.ACCESS_RULE: (ResourceAction.DELETE, ResourceAction.SHOW),
}
"""The actions that can be forbidden, by resource type."""

NOT_LOCKABLE = {
    ResourceType.SHARE: frozenset(
        {
            InstanceStatus.DELETING,
            InstanceStatus.ERROR_DELETING,
            InstanceStatus.DEFERRED_DELETING,
            InstanceStatus.ERROR_DEFERRED_DELETING,
            InstanceStatus.UNMANAGE_STARTING,
            InstanceStatus.MANAGE_ERROR_UNMANAGE_STARTING,
            InstanceStatus.UNMANAGE_ERROR,
        }
    ),
    ResourceType.ACCESS_RULE: DENIED | {RuleState.ERROR},
}
"""Statuses in which forbidding deletion comes too late."""
