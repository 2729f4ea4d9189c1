"""The words of resource locks."""

from manila_lite.states.access_rule import A
from manila_lite.states.share_instance import S


class Locked:
    """Which action a lock forbids."""

    DELETE = 'delete'
    SHOW = 'show'


class Kind:
    """What can be locked."""

    SHARE = 'share'
    ACCESS_RULE = 'access_rule'


class By:
    """In which capacity somebody has locked."""

    USER = 'user'
    ADMIN = 'admin'
    SERVICE = 'service'


ACTIONS = {
    Kind.SHARE: (Locked.DELETE,),
    Kind.ACCESS_RULE: (Locked.DELETE, Locked.SHOW),
}
"""The actions that can be forbidden, by what they are done to."""

TOO_LATE = {
    Kind.SHARE: frozenset(
        {
            S.DELETING,
            S.ERROR_DELETING,
            S.DEFERRED_DELETING,
            S.ERROR_DEFERRED_DELETING,
            S.UNMANAGE_STARTING,
            S.MANAGE_ERROR_UNMANAGE_STARTING,
            S.UNMANAGE_ERROR,
        }
    ),
    Kind.ACCESS_RULE: frozenset({A.QUEUED_TO_DENY, A.DENYING, A.ERROR}),
}
"""Statuses in which it is of no use any more to forbid deletion."""
