"""The words of resource locks."""

from manila_lite.states.access_rule import RuleState
from manila_lite.states.share_instance import InstanceStatus


class ResourceAction:
    """Which action a lock forbids."""

    DELETE = 'delete'
    SHOW = 'show'


class ResourceType:
    """What can be locked."""

    SHARE = 'share'
    ACCESS_RULE = 'access_rule'


class LockContext:
    """In which capacity somebody has locked."""

    USER = 'user'
    ADMIN = 'admin'
    SERVICE = 'service'


ACTIONS = {
    ResourceType.SHARE: (ResourceAction.DELETE,),
    ResourceType.ACCESS_RULE: (ResourceAction.DELETE, ResourceAction.SHOW),
}
"""The actions that can be forbidden, by what they are done to."""

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
    ResourceType.ACCESS_RULE: frozenset(
        {RuleState.QUEUED_TO_DENY, RuleState.DENYING, RuleState.ERROR}
    ),
}
"""Statuses in which it is of no use any more to forbid deletion."""
