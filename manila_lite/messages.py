"""What went wrong, in words for the project's user.

A message is two published codes: what was being done, and what came of
it. The words are composed when it is read, never from a driver's text.
"""

import datetime
import enum
import typing

from manila_lite.db.queries.admin import messages
from manila_lite.db.session import Session

ERROR = 'ERROR'
INFO = 'INFO'
"""Levels: of what failed, and of what was done that users wait for."""

_DONE = 'Done.'
"""What is said of success, which has no published detail of its own."""


class _Code(enum.Enum):
    """A published code as value, and the words it stands for."""

    words: str

    def __new__(cls, code: str, words: str) -> typing.Self:
        member = object.__new__(cls)
        member._value_ = code
        member.words = words
        return member


class Action(_Code):
    """What was being done."""

    ALLOCATE_HOST = '001', 'choose a place'
    CREATE = '002', 'create'
    DELETE_ACCESS_RULES = '003', 'remove access rules'
    PROMOTE = '004', 'promote'
    UPDATE = '005', 'update'
    REVERT_TO_SNAPSHOT = '006', 'revert to snapshot'
    DELETE = '007', 'delete'
    EXTEND = '008', 'extend'
    SHRINK = '009', 'shrink'
    UPDATE_ACCESS_RULES = '010', 'change access rules'
    ADD_UPDATE_SECURITY_SERVICE = '011', 'add or change a security service'
    TRANSFER_ACCEPT = '026', 'accept a transfer'
    UPDATE_METADATA = '027', 'change metadata'
    RESTORE_BACKUP = '028', 'restore from a backup'


class Detail(_Code):
    """What came of it."""

    UNKNOWN_ERROR = (
        '001',
        (
            'Something failed that has no closer description. Try again, or '
            'ask the administrator and name the request id.'
        ),
    )
    NO_VALID_HOST = (
        '002',
        (
            'None of the storage back ends can take this request. Another '
            'size or share type may fit.'
        ),
    )
    UNEXPECTED_NETWORK = (
        '003',
        (
            'A share network was given, but shares of this type are served '
            'without one.'
        ),
    )
    NO_SHARE_SERVER = (
        '004',
        ('No share server could be found or built on the share network.'),
    )
    NO_ACTIVE_AVAILABLE_REPLICA = (
        '005',
        (
            'No active replica is available to copy the data from. Wait '
            'until one is.'
        ),
    )
    NO_ACTIVE_REPLICA = '006', 'The share has no active replica.'
    FILTER_AVAILABILITY = (
        '007',
        (
            'No storage serves the availability zone. Name another zone, or '
            'none.'
        ),
    )
    FILTER_CAPABILITIES = (
        '008',
        (
            'No storage can do what the share type asks for. Choose another '
            'share type.'
        ),
    )
    FILTER_CAPACITY = (
        '009',
        (
            'No storage has enough room left for this size. A smaller share '
            'may fit.'
        ),
    )
    FILTER_DRIVER = (
        '010',
        (
            'The storage that is left accepts no such request at this time, '
            'by rules of its own.'
        ),
    )
    FILTER_IGNORE = (
        '011',
        (
            'Every storage that could take the request has been tried, and '
            'failed.'
        ),
    )
    FILTER_JSON = (
        '012',
        ('No storage meets the conditions given as scheduler hints.'),
    )
    FILTER_RETRY = (
        '013',
        (
            'The request was tried on other storage before, and nothing is '
            'left to try.'
        ),
    )
    FILTER_REPLICATION = (
        '014',
        ('No storage can replicate with the one that holds the share.'),
    )
    DRIVER_FAILED_EXTEND = (
        '015',
        (
            'The storage could not make the share larger. Its data is as it '
            'was.'
        ),
    )
    FILTER_CREATE_FROM_SNAPSHOT = (
        '016',
        ('No storage can create a share from this snapshot.'),
    )
    DRIVER_FAILED_CREATING_FROM_SNAP = (
        '017',
        ('The storage failed while it copied the data of the snapshot.'),
    )
    DRIVER_REFUSED_SHRINK = (
        '018',
        (
            'The share holds more data than would fit into the new size. '
            'Remove some, or choose a larger size.'
        ),
    )
    DRIVER_FAILED_SHRINK = (
        '019',
        ('The storage cannot make this share smaller.'),
    )
    FORBIDDEN_CLIENT_ACCESS = (
        '020',
        ('The storage does not let this client have access.'),
    )
    UNSUPPORTED_CLIENT_ACCESS = (
        '021',
        ('The storage does not know this access type or level.'),
    )
    UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE = (
        '022',
        (
            'The storage cannot take this security service into use on the '
            'share network.'
        ),
    )
    SECURITY_SERVICE_FAILED_AUTH = (
        '023',
        (
            'The security service refused the user or the password it was '
            'given.'
        ),
    )
    NO_DEFAULT_SHARE_TYPE = (
        '024',
        ('No share type was named, and no default is set. Name a share type.'),
    )
    MISSING_SECURITY_SERVICE = (
        '025',
        ('The share network lacks a security service that is needed.'),
    )
    DRIVER_FAILED_TRANSFER_ACCEPT = (
        '026',
        (
            'The share still has access rules, which the storage cannot pass '
            'on. Clear them with the transfer.'
        ),
    )
    SHARE_NETWORK_PORT_QUOTA_LIMIT_EXCEEDED = (
        '027',
        ('The network service allows the project no more ports.'),
    )
    SHARE_BACKEND_NOT_READY_YET = (
        '028',
        (
            'The storage has only just started and is not ready. Try again '
            'in a while.'
        ),
    )
    UPDATE_METADATA_SUCCESS = (
        '029',
        ('The storage has applied the changed metadata.'),
    )
    UPDATE_METADATA_FAILURE = (
        '030',
        ('The storage could not apply the changed metadata.'),
    )
    UPDATE_METADATA_NOT_DELETED = (
        '031',
        ('The metadata is gone, but the storage keeps what it had set.'),
    )
    TARGETED_RESTORE_UNSUPPORTED = (
        '032',
        ('The storage restores a backup only to the share it was made of.'),
    )
    NEUTRON_SUBNET_FULL = (
        '033',
        ('The subnet of the share network has no free address.'),
    )
    UNSUPPORTED_REPLICA_CREATE_CONFIG = (
        '034',
        ('The storage cannot create a replica with this configuration.'),
    )


_ACTIONS = {action.value: action.words for action in Action}
_DETAILS = {detail.value: detail.words for detail in Detail}


def user_message(action_id: str, detail_id: str | None) -> str:
    """The words of a message; codes nobody knows read as unknown.

    Without a detail nothing went wrong.
    """
    action = _ACTIONS.get(action_id, 'unknown action')
    if detail_id is None:
        return f'{action}: {_DONE}'
    detail = _DETAILS.get(detail_id, Detail.UNKNOWN_ERROR.words)
    return f'{action}: {detail}'


def record(
    session: Session,
    *,
    project_id: str,
    request_id: str | None,
    action: Action,
    resource_type: str,
    resource_id: str,
    detail: Detail | None,
    ttl: int,
) -> str:
    """Leave a message for the project's users; its id.

    `resource_type` is a word of the API such as SHARE; the message is
    purged `ttl` seconds from now. Without a detail it tells of success.
    """
    message_id = session.new_id()
    messages.insert_message(
        session,
        {
            'id': message_id,
            'project_id': project_id,
            'message_level': ERROR if detail else INFO,
            'request_id': request_id,
            'resource_type': resource_type,
            'resource_id': resource_id,
            'action_id': action.value,
            'detail_id': detail and detail.value,
            'created_at': session.now,
            'expires_at': session.now + datetime.timedelta(seconds=ttl),
        },
    )
    return message_id
