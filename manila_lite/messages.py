"""What went wrong, in words for the project's user.

A message is composed of an action and a detail, each a published code
(message-codes.csv); never of the text of a driver, which may hold what
users are not to see.
"""

import datetime
import enum

from manila_lite.db.queries import messages
from manila_lite.db.session import Session

ERROR = 'ERROR'
"""The only level there is."""


class Action(enum.StrEnum):
    """What was being done."""

    ALLOCATE_HOST = '001'
    CREATE = '002'
    DELETE_ACCESS_RULES = '003'
    PROMOTE = '004'
    UPDATE = '005'
    REVERT_TO_SNAPSHOT = '006'
    DELETE = '007'
    EXTEND = '008'
    SHRINK = '009'
    UPDATE_ACCESS_RULES = '010'
    ADD_UPDATE_SECURITY_SERVICE = '011'
    TRANSFER_ACCEPT = '026'
    UPDATE_METADATA = '027'
    RESTORE_BACKUP = '028'


class Detail(enum.StrEnum):
    """What became of it, or why not."""

    UNKNOWN_ERROR = '001'
    NO_VALID_HOST = '002'
    UNEXPECTED_NETWORK = '003'
    NO_SHARE_SERVER = '004'
    NO_ACTIVE_AVAILABLE_REPLICA = '005'
    NO_ACTIVE_REPLICA = '006'
    FILTER_AVAILABILITY = '007'
    FILTER_CAPABILITIES = '008'
    FILTER_CAPACITY = '009'
    FILTER_DRIVER = '010'
    FILTER_IGNORE = '011'
    FILTER_JSON = '012'
    FILTER_RETRY = '013'
    FILTER_REPLICATION = '014'
    DRIVER_FAILED_EXTEND = '015'
    FILTER_CREATE_FROM_SNAPSHOT = '016'
    DRIVER_FAILED_CREATING_FROM_SNAP = '017'
    DRIVER_REFUSED_SHRINK = '018'
    DRIVER_FAILED_SHRINK = '019'
    FORBIDDEN_CLIENT_ACCESS = '020'
    UNSUPPORTED_CLIENT_ACCESS = '021'
    UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE = '022'
    SECURITY_SERVICE_FAILED_AUTH = '023'
    NO_DEFAULT_SHARE_TYPE = '024'
    MISSING_SECURITY_SERVICE = '025'
    DRIVER_FAILED_TRANSFER_ACCEPT = '026'
    SHARE_NETWORK_PORT_QUOTA_LIMIT_EXCEEDED = '027'
    SHARE_BACKEND_NOT_READY_YET = '028'
    UPDATE_METADATA_SUCCESS = '029'
    UPDATE_METADATA_FAILURE = '030'
    UPDATE_METADATA_NOT_DELETED = '031'
    TARGETED_RESTORE_UNSUPPORTED = '032'
    NEUTRON_SUBNET_FULL = '033'
    UNSUPPORTED_REPLICA_CREATE_CONFIG = '034'


_ACTIONS = {
    Action.ALLOCATE_HOST: 'choose a back end',
    Action.CREATE: 'create',
    Action.DELETE_ACCESS_RULES: 'delete access rules',
    Action.PROMOTE: 'promote replica',
    Action.UPDATE: 'update',
    Action.REVERT_TO_SNAPSHOT: 'revert to snapshot',
    Action.DELETE: 'delete',
    Action.EXTEND: 'extend',
    Action.SHRINK: 'shrink',
    Action.UPDATE_ACCESS_RULES: 'update access rules',
    Action.ADD_UPDATE_SECURITY_SERVICE: 'add or update security service',
    Action.TRANSFER_ACCEPT: 'accept transfer',
    Action.UPDATE_METADATA: 'update metadata',
    Action.RESTORE_BACKUP: 'restore backup',
}

_DETAILS = {
    Detail.UNKNOWN_ERROR: 'The operation failed for a reason that only an '
                          'administrator can look up.',
    Detail.NO_VALID_HOST: 'No back end can serve this request. Another size '
                          'or share type may do.',
    Detail.UNEXPECTED_NETWORK: 'The share type takes no share network.',
    Detail.NO_SHARE_SERVER: 'No share server could be found or made.',
    Detail.NO_ACTIVE_AVAILABLE_REPLICA:
        'The share has no active replica that is available.',
    Detail.NO_ACTIVE_REPLICA: 'The share has no active replica.',
    Detail.FILTER_AVAILABILITY:
        'No back end in the wanted availability zones can serve this.',
    Detail.FILTER_CAPABILITIES:
        'No back end offers what the share type demands.',
    Detail.FILTER_CAPACITY: 'No back end has room for this size.',
    Detail.FILTER_DRIVER:
        'The drivers of all back ends decline such a share.',
    Detail.FILTER_IGNORE: 'Every back end was tried already.',
    Detail.FILTER_JSON: 'No back end passes the given expression.',
    Detail.FILTER_RETRY: 'Every back end was tried, and none succeeded.',
    Detail.FILTER_REPLICATION:
        'No back end replicates as the share type demands.',
    Detail.DRIVER_FAILED_EXTEND: 'The back end could not extend the share.',
    Detail.FILTER_CREATE_FROM_SNAPSHOT:
        'No back end can create a share from this snapshot.',
    Detail.DRIVER_FAILED_CREATING_FROM_SNAP:
        'The back end could not copy the snapshot into the share.',
    Detail.DRIVER_REFUSED_SHRINK:
        'The share holds more than would fit after shrinking.',
    Detail.DRIVER_FAILED_SHRINK: 'The back end cannot shrink the share.',
    Detail.FORBIDDEN_CLIENT_ACCESS: 'This client may not be let in.',
    Detail.UNSUPPORTED_CLIENT_ACCESS:
        'The back end does not know this kind or level of access.',
    Detail.UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE:
        'The back end cannot apply the security service.',
    Detail.SECURITY_SERVICE_FAILED_AUTH:
        'The security service refused its credentials.',
    Detail.NO_DEFAULT_SHARE_TYPE:
        'No share type was named and there is no default one.',
    Detail.MISSING_SECURITY_SERVICE:
        'The share network lacks a security service that is needed.',
    Detail.DRIVER_FAILED_TRANSFER_ACCEPT:
        'The back end needs all access rules cleared for a transfer.',
    Detail.SHARE_NETWORK_PORT_QUOTA_LIMIT_EXCEEDED:
        'The network service has no port left for this project.',
    Detail.SHARE_BACKEND_NOT_READY_YET:
        'No back end has reported yet. Try again in a minute.',
    Detail.UPDATE_METADATA_SUCCESS: 'The metadata were passed on.',
    Detail.UPDATE_METADATA_FAILURE: 'The metadata were not accepted.',
    Detail.UPDATE_METADATA_NOT_DELETED:
        'A deleted key is not taken back from the back end.',
    Detail.TARGETED_RESTORE_UNSUPPORTED:
        'The back end restores only to the share of the backup.',
    Detail.NEUTRON_SUBNET_FULL: 'The subnet has no free address.',
    Detail.UNSUPPORTED_REPLICA_CREATE_CONFIG:
        'The back end cannot make such a replica.',
}


def user_message(action_id: str, detail_id: str | None) -> str:
    """The whole message in words: the action, a colon, the detail."""
    return (f'{_ACTIONS[Action(action_id)]}: '
            f'{_DETAILS[Detail(detail_id or Detail.UNKNOWN_ERROR)]}')


def record(session: Session, *, project_id: str, request_id: str | None,
           action: Action, resource_type: str, resource_id: str,
           detail: Detail, ttl: int) -> None:
    """Leave a message for a project; it expires after `ttl` seconds."""
    messages.insert(
        session, project_id=project_id, request_id=request_id,
        action_id=action.value, resource_type=resource_type,
        resource_id=resource_id, detail_id=detail.value,
        message_level=ERROR,
        expires_at=session.now + datetime.timedelta(seconds=ttl))
