"""User messages about the outcome of operations, most of them failures.

A message stores two published codes: the action and the detail. The text
is composed when the message is read. A reason is added to it only where it is
about what the user gave, such as a path or a client, or says that a server
does not answer; other texts of drivers are for operators. An explanation names
hosts and pools, or has the words of a driver: it is added for administrators
only, with what they can do next.
"""

import datetime
import enum
import typing

from manila_lite import exception, masking
from manila_lite.db.queries import messages
from manila_lite.db.session import Session

ERROR = 'ERROR'
INFO = 'INFO'
"""Message levels: ERROR for failures, INFO for reported successes."""

LONGEST_REASON = 1000
"""Characters of a reason that are kept."""

LONGEST_EXPLANATION = 8000
"""Characters of an explanation that are kept."""


class _Code(enum.Enum):
    """A published code as value, with its text in `words`."""

    words: str

    def __new__(cls, code: str, words: str) -> typing.Self:
        member = object.__new__(cls)
        member._value_ = code
        member.words = words
        return member

    @classmethod
    def of(cls, code: str | None) -> typing.Self:
        """Return the member with a code."""
        return next(member for member in cls if member.value == code)


class Action(_Code):
    """The operation that a message is about."""

    ALLOCATE_HOST = '001', 'allocate host'
    CREATE = '002', 'create'
    DELETE_ACCESS_RULES = '003', 'delete access rules'
    PROMOTE = '004', 'promote'
    UPDATE = '005', 'update'
    REVERT_TO_SNAPSHOT = '006', 'revert to snapshot'
    DELETE = '007', 'delete'
    EXTEND = '008', 'extend'
    SHRINK = '009', 'shrink'
    UPDATE_ACCESS_RULES = '010', 'update access rules'
    ADD_UPDATE_SECURITY_SERVICE = '011', 'add or update security service'
    TRANSFER_ACCEPT = '026', 'accept transfer'
    UPDATE_METADATA = '027', 'update metadata'
    RESTORE_BACKUP = '028', 'restore backup'


# The published words of every failure of placement.
_NOT_PLACED = 'No storage could be allocated for this share request.'


class Detail(_Code):
    """The outcome of an operation, or the reason of its failure."""

    # Not published: no published code says that what was asked for is done.
    DONE = '000', 'Done.'
    UNKNOWN_ERROR = (
        '001',
        'An unexpected error occurred. Try again, or contact the '
        'administrator with the request id.',
    )
    NO_VALID_HOST = (
        '002',
        f'{_NOT_PLACED} No back end can serve it; another size or share type may fit.',
    )
    UNEXPECTED_NETWORK = (
        '003',
        'A share network was given, but shares of this type do not use one.',
    )
    NO_SHARE_SERVER = (
        '004',
        'No share server could be found or created on the share network.',
    )
    NO_ACTIVE_AVAILABLE_REPLICA = (
        '005',
        'No active replica is available to copy the data from. Try again when one is.',
    )
    NO_ACTIVE_REPLICA = '006', 'The share has no active replica.'
    FILTER_AVAILABILITY = (
        '007',
        f'{_NOT_PLACED} None is available in the availability zone. Use '
        'another zone, or none.',
    )
    FILTER_CAPABILITIES = (
        '008',
        f'{_NOT_PLACED} None has the capabilities that the share type '
        'requires. Use another share type.',
    )
    FILTER_CAPACITY = (
        '009',
        f'{_NOT_PLACED} None has enough capacity for this size. A smaller '
        'share may fit.',
    )
    FILTER_DRIVER = (
        '010',
        f'{_NOT_PLACED} What remains does not accept it at this time, by its '
        'own rules. Try again later.',
    )
    FILTER_IGNORE = (
        '011',
        f'{_NOT_PLACED} All that could serve it has been tried and failed.',
    )
    FILTER_JSON = (
        '012',
        f'{_NOT_PLACED} None meets the conditions in the scheduler hints.',
    )
    FILTER_RETRY = (
        '013',
        f'{_NOT_PLACED} It has been tried on other storage before, and none '
        'is left to try.',
    )
    FILTER_REPLICATION = (
        '014',
        f'{_NOT_PLACED} None can replicate with the storage of the share.',
    )
    DRIVER_FAILED_EXTEND = (
        '015',
        'The storage could not extend the share. Its data is unchanged.',
    )
    FILTER_CREATE_FROM_SNAPSHOT = (
        '016',
        f'{_NOT_PLACED} None can create a share from this snapshot.',
    )
    DRIVER_FAILED_CREATING_FROM_SNAP = (
        '017',
        'The storage failed to copy the data of the snapshot.',
    )
    DRIVER_REFUSED_SHRINK = (
        '018',
        'The share holds more data than the new size allows. Remove '
        'data, or choose a larger size.',
    )
    DRIVER_FAILED_SHRINK = '019', 'The storage cannot shrink this share.'
    FORBIDDEN_CLIENT_ACCESS = (
        '020',
        'The storage does not allow access by this client.',
    )
    UNSUPPORTED_CLIENT_ACCESS = (
        '021',
        'The storage does not support this access type or level.',
    )
    UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE = (
        '022',
        'The storage cannot use this security service on the share network.',
    )
    SECURITY_SERVICE_FAILED_AUTH = (
        '023',
        'The security service rejected the user or the password.',
    )
    NO_DEFAULT_SHARE_TYPE = (
        '024',
        'No share type was given and no default is configured. Name a share type.',
    )
    MISSING_SECURITY_SERVICE = (
        '025',
        'The share network lacks a required security service.',
    )
    DRIVER_FAILED_TRANSFER_ACCEPT = (
        '026',
        'The share still has access rules, which the storage cannot '
        'transfer. Remove them with the transfer.',
    )
    SHARE_NETWORK_PORT_QUOTA_LIMIT_EXCEEDED = (
        '027',
        'The project has reached its limit of network ports.',
    )
    SHARE_BACKEND_NOT_READY_YET = (
        '028',
        'The storage is not ready, or cannot be reached. Try again later; '
        'if it does not help, contact the administrator.',
    )
    UPDATE_METADATA_SUCCESS = ('029', 'The storage has applied the changed metadata.')
    UPDATE_METADATA_FAILURE = (
        '030',
        'The storage could not apply the changed metadata.',
    )
    UPDATE_METADATA_NOT_DELETED = (
        '031',
        'The metadata was deleted, but its effect on the storage remains.',
    )
    TARGETED_RESTORE_UNSUPPORTED = (
        '032',
        'The storage can restore a backup only to the share it was made from.',
    )
    NEUTRON_SUBNET_FULL = (
        '033',
        'The subnet of the share network has no free address.',
    )
    UNSUPPORTED_REPLICA_CREATE_CONFIG = (
        '034',
        'The storage cannot create a replica with this configuration.',
    )


_NEXT_STEPS = {
    Detail.UNKNOWN_ERROR: (
        'mend the back end, then delete the resource or reset its status, and '
        'let the user repeat the request.'
    ),
    Detail.NO_VALID_HOST: (
        'compare the request with what the back ends report, see "share pool '
        'list --detail".'
    ),
    Detail.UNEXPECTED_NETWORK: (
        'let the user repeat the request without a share network, or with a '
        'share type whose driver_handles_share_servers is True.'
    ),
    Detail.NO_SHARE_SERVER: (
        'see "share server list" for servers of this share network in error, '
        'and whether the back end can create another one.'
    ),
    Detail.NO_ACTIVE_AVAILABLE_REPLICA: (
        'bring the active replica to status available, and create the replica again.'
    ),
    Detail.NO_ACTIVE_REPLICA: (
        'find out which replica has the data, and reset its replica state to active.'
    ),
    Detail.FILTER_AVAILABILITY: (
        'add a back end in this zone, or correct the availability_zones of the '
        'share type.'
    ),
    Detail.FILTER_CAPABILITIES: (
        'compare the extra specs of the share type with the capabilities in '
        '"share pool list --detail".'
    ),
    Detail.FILTER_CAPACITY: (
        'add storage, remove what is not needed, or raise '
        'max_over_subscription_ratio where thin provisioning allows it.'
    ),
    Detail.FILTER_DRIVER: (
        'evaluate the filter_function of these back ends with what they report.'
    ),
    Detail.FILTER_IGNORE: (
        'find out in the logs of the share services why each of these back ends '
        'has failed.'
    ),
    Detail.FILTER_JSON: ('compare the scheduler hints with what the back ends report.'),
    Detail.FILTER_RETRY: (
        'find out in the logs of the share services why the attempts have '
        'failed, then let the user repeat the request.'
    ),
    Detail.FILTER_REPLICATION: (
        'give another back end the replication_domain of the one with the '
        'active replica.'
    ),
    Detail.DRIVER_FAILED_EXTEND: (
        'mend the back end, reset the status of the share to available, and '
        'extend it again.'
    ),
    Detail.FILTER_CREATE_FROM_SNAPSHOT: (
        'see whether the back end of the snapshot has room, and is up.'
    ),
    Detail.DRIVER_FAILED_CREATING_FROM_SNAP: (
        'check the snapshot on the back end, delete the share, and create it again.'
    ),
    Detail.DRIVER_REFUSED_SHRINK: (
        'compare the usage that the back end reports with the new size.'
    ),
    Detail.DRIVER_FAILED_SHRINK: (
        'if the back end can shrink shares, mend it, reset the status of the '
        'share to available, and shrink it again.'
    ),
    Detail.FORBIDDEN_CLIENT_ACCESS: (
        'see which clients the back end allows, then let the user add the rule again.'
    ),
    Detail.UNSUPPORTED_CLIENT_ACCESS: (
        'tell the user which access types and levels the back end supports.'
    ),
    Detail.UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE: (
        'use a share network whose share servers are on back ends that support '
        'this, or one without share servers.'
    ),
    Detail.SECURITY_SERVICE_FAILED_AUTH: (
        'check the user and the password of the security service.'
    ),
    Detail.NO_DEFAULT_SHARE_TYPE: 'configure default_share_type.',
    Detail.MISSING_SECURITY_SERVICE: (
        'add a security service of this type to the share network.'
    ),
    Detail.DRIVER_FAILED_TRANSFER_ACCEPT: (
        'remove the access rules, and accept the transfer again.'
    ),
    Detail.SHARE_NETWORK_PORT_QUOTA_LIMIT_EXCEEDED: (
        'raise the limit of network ports of the project.'
    ),
    Detail.SHARE_BACKEND_NOT_READY_YET: (
        'see "service list" and the log of the share service, and whether the '
        'storage can be reached from its host.'
    ),
    Detail.UPDATE_METADATA_FAILURE: (
        'mend the back end, and let the user set the metadata again.'
    ),
    Detail.UPDATE_METADATA_NOT_DELETED: (
        'undo on the back end what the metadata has set.'
    ),
    Detail.TARGETED_RESTORE_UNSUPPORTED: (
        'restore the backup to its own share, and copy from there.'
    ),
    Detail.NEUTRON_SUBNET_FULL: (
        'free addresses of the range, or add a subnet to the share network.'
    ),
    Detail.UNSUPPORTED_REPLICA_CREATE_CONFIG: (
        'create the replica on another back end, or with another share type.'
    ),
}
"""What administrators can do about each failure."""

_SUCCESSES = frozenset({Detail.DONE, Detail.UPDATE_METADATA_SUCCESS})

_WORDS_OF_BOTH = {
    (Action.REVERT_TO_SNAPSHOT.value, Detail.UNKNOWN_ERROR.value): (
        'The revert was interrupted or has failed, and the share may have the '
        'content of the snapshot in part. If both are in error, revert to '
        'the same snapshot again. If the share is in reverting_error, an '
        'administrator has to check it first.'
    ),
    (Action.DELETE_ACCESS_RULES.value, Detail.UNKNOWN_ERROR.value): (
        'The storage could not remove the access, and clients may still have '
        'it. Delete the rule again, or contact the administrator with the '
        'request id.'
    ),
}
"""Texts of details that say more about one action."""

_ACTIONS = {action.value: action.words for action in Action}
_DETAILS = {detail.value: detail.words for detail in Detail}
_STEPS = {detail.value: f'Next: {step}' for detail, step in _NEXT_STEPS.items()}


def stored_detail(detail_id: str | None) -> str:
    """Return the code of a stored detail.

    The previous release stores none for success.
    """
    return detail_id or Detail.DONE.value


def user_message(
    action_id: str,
    detail_id: str | None,
    reason: str | None = None,
    explanation: str | None = None,
) -> str:
    """Return the text of a message; unknown codes read as unknown.

    An explanation is for administrators.
    """
    action = _ACTIONS.get(action_id, 'unknown action')
    detail_id = stored_detail(detail_id)
    detail = _WORDS_OF_BOTH.get((action_id, detail_id)) or _DETAILS.get(
        detail_id, Detail.UNKNOWN_ERROR.words
    )
    return (
        f'{action}: {detail}{f" ({reason})" if reason else ""}'
        f'{_explained(detail_id, explanation)}'
    )


def _explained(detail_id: str, explanation: str | None) -> str:
    if not explanation:
        return ''
    step = _STEPS.get(detail_id)
    return f' {explanation.rstrip(".")}. {step}' if step else f' {explanation}'


def detail_in(error: Exception) -> Detail | None:
    """Return the detail that an error gives as the reason, if any."""
    if isinstance(
        error,
        (
            exception.FileServerUnresponsive,
            exception.NoShareServiceUp,
            exception.StorageUnavailable,
        ),
    ) or (_call_in(error) and isinstance(error, ConnectionError | TimeoutError)):
        return Detail.SHARE_BACKEND_NOT_READY_YET
    if isinstance(error, exception.SecurityServiceFailedAuth):
        return Detail.SECURITY_SERVICE_FAILED_AUTH
    own = getattr(error, 'params', {}).get('message_detail')
    return own if isinstance(own, Detail) else None


def reason_in(error: Exception) -> str | None:
    """Return what an error says that users may read, if anything."""
    if isinstance(error, _FOR_USERS):
        return error.msg
    return None


def explanation_in(error: Exception) -> str | None:
    """Return what an error says about back ends that could not serve.

    Of a driver that has failed these are its words, and which call it was.
    """
    if isinstance(error, _ABOUT_BACKENDS) or (
        detail_in(error) is Detail.NO_SHARE_SERVER
    ):
        return f'{error}'
    call = _call_in(error)
    if call is None:
        return None
    said = str(error)
    if not isinstance(error, exception.ManilaLiteError):
        said = f'{type(error).__name__}: {said}' if said else repr(error)
    return f'{call}: {said}'


def _call_in(error: Exception) -> str | None:
    """Return the call of a driver that has raised an error, in words."""
    notes = getattr(error, '__notes__', ())
    return notes[-1] if notes else None


_ABOUT_BACKENDS = (
    exception.ContentUnreachable,
    exception.NoFreeAddress,
    exception.NoShareServiceUp,
    exception.NoValidHost,
    exception.RestoreInterrupted,
)

_FOR_USERS = (
    exception.DriverBackupsUnsupported,
    exception.FileServerUnresponsive,
    exception.ManageInvalidShare,
    exception.ManageInvalidShareSnapshot,
    exception.InvalidShareAccess,
    exception.InvalidShareAccessLevel,
    exception.InvalidShareAccessType,
)


Resource = tuple[str, str]
"""A type of the API such as SHARE, and the id of a resource."""


def record(
    session: Session,
    project_id: str,
    action: Action,
    resource: Resource,
    ttl: int,
    *,
    detail: Detail = Detail.UNKNOWN_ERROR,
    request_id: str | None = None,
    reason: str | None = None,
    explanation: str | None = None,
) -> str:
    """Write a message to the users of a project; return its id.

    The message expires in `ttl` seconds. Success is a detail like any failure.
    """
    resource_type, resource_id = resource
    message_id = session.new_id()
    messages.insert_message(
        session,
        {
            'id': message_id,
            'project_id': project_id,
            'message_level': INFO if detail in _SUCCESSES else ERROR,
            'request_id': request_id,
            'resource_type': resource_type,
            'resource_id': resource_id,
            'action_id': action.value,
            'detail_id': detail.value,
            'reason': reason and masking.mask(reason)[:LONGEST_REASON],
            'explanation': (
                explanation and masking.mask(explanation)[:LONGEST_EXPLANATION]
            ),
            'created_at': session.now,
            'expires_at': session.now + datetime.timedelta(seconds=ttl),
        },
    )
    return message_id
