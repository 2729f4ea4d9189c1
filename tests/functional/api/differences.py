"""Every difference from the published API, with its reason.

A test fails for a difference that is not listed here, and for a listed one
that no longer exists. The key of an operation is its method, path and action
as in the table of the API surface.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar('T')

PLANNED: dict[str, tuple[str, ...]] = {}
"""Operations of capabilities that are planned."""

UNSUPPORTED_OPERATIONS = {
    operation: f'planned with {capability}'
    for capability, operations in PLANNED.items()
    for operation in operations
} | {
    'GET /v2/extensions/{alias}': ('there are no extensions, so every alias is unknown')
}
"""Operations that are not supported."""

UNREACHABLE_CODES = {
    (
        f'{method} /v2/os-quota-sets/{{project_id}}',
        404,
    ): 'any project or user id is accepted, so none is unknown; share '
    'types can be unknown and have quotas from 2.39'
    for method in ('GET', 'PUT', 'DELETE')
} | {
    (operation, 500): 'answers 409 if a service is down, like other operations'
    for operation in (
        'POST /v2/share-networks/{id}/subnets',
        'POST /v2/share-networks/{id}/action share_network_subnet_create_check',
    )
}
"""Published error codes that never occur."""

UNREACHABLE_CODES |= {
    (operation, 404): 'a share_id that the caller does not see finds nothing'
    for operation in ('GET /v2/share-replicas', 'GET /v2/share-replicas/detail')
}

UNREACHABLE_CODES['POST /v2/share-servers/{id}/action migration_get_progress', 409] = (
    'if the service is down, the answer is the last known progress with its time'
)

UNREACHABLE_CODES['POST /v2/share-backups', 409] = (
    'a share that is busy answers 400, like other requests about it'
)

HEADER_NOT_REQUIRED = {
    f'POST /v2/share-servers/{{id}}/action {action}': (
        'the header is not required; requests that send it work as well'
    )
    for action in (
        'migration_check',
        'migration_start',
        'migration_complete',
        'migration_cancel',
        'migration_get_progress',
        'reset_task_state',
    )
}
"""Experimental operations that also answer without the header."""

MISSING_FIELDS: dict[tuple[str, str], str] = {}
"""Published fields that never appear, by resource and name."""

MISSING_VIEWS = {
    ('extension', 'item'): 'there are no extensions',
    ('limits', 'rate[]'): 'there are no rate limits, so the list is empty',
    (
        'quota set',
        'detail',
    ): 'one row for every quota key, tested as the fields of `show`',
}
"""Published views that never appear, by resource and name."""

RULES = {
    'unknown URLs': (
        'answer 404 with an error in JSON like all others; the published '
        'answer is plain text, which clients cannot read'
    ),
    'methods that a URL does not have': (
        'answer 405 with Allow, so that clients see what is wrong; the '
        'published code is 404'
    ),
    'name~ and description~': (
        'match a literal part of the text, not a regular expression: a '
        'regular expression of a tenant could overload the database'
    ),
    'required fields': ('a body without one answers 400; the published code is 500'),
    'metadata filter of shares': (
        'a value that is no object answers 400 as in other lists, not 500'
    ),
    'resources of two projects': (
        'an administrator cannot put a share, group or replica on a share '
        'network, in a share group, on a share server or into a copy of a '
        'snapshot of another project (400): data would cross, or the owner '
        'could neither see nor remove it'
    ),
    'sort keys of fields for administrators': (
        'are accepted from others as published, and ignored: the order would '
        'reveal where shares are'
    ),
    'POST metadata/{key} of shares': (
        'the body has metadata with that key; the undocumented additional '
        'object `meta` is not required'
    ),
    'numbers as specs of QoS types': (
        'are accepted and stored as text, because the published examples '
        'have them; the table has only texts and booleans'
    ),
    'quota keys of later versions': (
        'every version refuses all keys that it does not know, not only '
        'those of the next version'
    ),
    'access rules being updated': (
        'shown as being applied before 2.88, as older clients do not know the '
        'newer states'
    ),
    'resource locks changed to show': ('answer 400; the published code is 500'),
    'lock of a share for a rule': (
        'is deleted with the lock of the rule instead of being left behind'
    ),
    'filters of hidden rules': (
        'do not match hidden targets and keys, which would reveal them'
    ),
    'wrong direction': (
        'a sort_dir that is neither asc nor desc answers 400 on every list; '
        'messages, resource locks and transfers take it for asc'
    ),
    'next links': (
        'have an offset as well as a marker, and in the default order the '
        'position of the last item, so that later pages are as fast as the '
        'first one'
    ),
    'length of share lists': (
        'is limited even if there is no limit in the query: to '
        'osapi_max_limit for shares of all projects, to ten times that for '
        'those of one project; a link leads to the next page'
    ),
    'lists of instances': (
        'are paged like other lists, for shares as well as for snapshots'
    ),
    'lists of QoS types': ('have a link to the next page, qos_types_links'),
    'lists on networks': (
        'have a link to the next page, for share networks as well as for '
        'security services'
    ),
    'long lists': (
        'are not sorted by other keys and not counted, and offsets are '
        'limited unless they are those of a link: these answer 400'
    ),
    'number of keys in filters': (
        'is limited to 20 for metadata, extra_specs and capabilities; more answer 400'
    ),
    'markers': (
        'are honoured by every list, alone or in place of that of a link: '
        'the page begins behind this item; published lists ignore them, and '
        'openstacksdk would read the last page twice'
    ),
    'network values of new share networks': (
        'created_at, network_type, segmentation_id, cidr and ip_version in '
        'the body of a create are ignored: the service writes them, when it '
        'creates the network and when it allocates addresses'
    ),
    'progress of unknown share servers': (
        'migration_get_progress of a server that never migrated and does not '
        'exist answers 404 like every other action; the published code is 400'
    ),
    'access rules of offered shares': (
        'cannot be changed while the share awaits its transfer, although that '
        'status is not transitional: the project that accepts the share '
        'decides about its rules'
    ),
    'locks of offered shares': (
        'do not exist: a share with resource locks cannot be offered, and an '
        'offered share not locked, since its next project could not remove '
        'the locks'
    ),
    'user_message of failed placements': (
        'also says why each pool was rejected if an administrator reads it'
    ),
    'detail_id of success': (
        'is 000 for operations that have no published detail of success; the '
        'user_message ends in "Done."'
    ),
    'links of share transfers': (
        'lead to /share-transfers; the path in the published samples does not exist'
    ),
    'links of share groups': (
        'lead to /share-groups; the path in the published samples does not exist'
    ),
    'acceptance that takes long': (
        'is answered after some seconds, and carried out later; a user '
        'message says if it fails'
    ),
    'reset_task_state': (
        'a state that a service works on is accepted only for a share that is '
        'being migrated, and those of the data service never: nothing would '
        'end them; null is refused for such a share, since the official '
        'client sends it with every change of a share'
    ),
}
"""Behaviour that differs from the published notes."""

FACTS = {
    'add-perodic-task-reservations': (
        'a reservation belongs to the work that it was made for and does not '
        'expire: it is released when the work ends or is recovered'
    ),
    'maxTotalReplicaGigabytes': (
        'a share that is managed counts beyond the limit of replicas like '
        'beyond all other limits: it exists'
    ),
    'bp-ocata-migration.2': (
        'a share with snapshots is refused at once without '
        'preserve_snapshots, forced or not: its snapshots would be lost, so '
        'the migration could only fail later'
    ),
    'bp-ocata-migration.4': (
        'a migration that changes nothing answers 200 and does nothing, as '
        'the published table of operations says'
    ),
    'bp-ocata-migration.5': (
        'the published table of operations has them from 2.22 on, and '
        'migration_start from 2.29 on'
    ),
    'LP1910752': (
        'no share is migrated into a type with replicas: its data is copied '
        'into a new share of that type'
    ),
    'LP1927060': (
        'a share of a type with replicas is not migrated: a replica on the '
        'destination, which is promoted, does the same'
    ),
    'LP1909847': (
        'the start of a back end never waits for ensuring, which is work of '
        'its own; the option has no effect'
    ),
    'host_resource_response': (
        'the view of a member does not have the field, like the published sample'
    ),
    'share-group-types.1': (
        'share_types is required, as the published request says: the default '
        'type may be another one later, and what groups of the type may hold '
        'would change with it'
    ),
    'LP1900752': (
        'the driver knows which security services it needs, and is chosen '
        'after the request: the share ends in error, and the user message '
        'has the detail 025'
    ),
    'LP2066871.2': (
        'the level of a rule of any type can be changed: every driver is '
        'given rules of all types with their levels, and denying a user '
        'name to change its level would disconnect its clients'
    ),
    'LP1959472': (
        'there is no JSON filter: queries about what back ends report are '
        'for administrators, who write them into share types'
    ),
    'check-thin-provisioning.1': (
        'a pool that reports thin provisioning over-subscribes shares of '
        'types that say nothing about it as well: all its shares are thin '
        'then; only a type with thin_provisioning false counts free room'
    ),
    'LP2067266': (
        'a share server that could not be deleted keeps its addresses: it '
        'may still answer on the back end, and its addresses would be given '
        'to another one'
    ),
    'LP1881098': (
        'back ends with share servers, groups or replicas keep their name, '
        'and the command refuses to move them: drivers have stored it on the '
        'storage'
    ),
    'metadata_request.2': (
        'metadata keys that differ in case are different keys on every '
        'database: none of two values that a client has stored is lost'
    ),
    'LP2081827': (
        'a deleted resource leaves no row, and neither does a denied access '
        'rule, so that there is nothing to restore or to purge; what is '
        'purged are records of what has been done'
    ),
    'security_service_password': (
        'a password may be given before its user, which a later update can '
        'add; drivers get what is there'
    ),
    'LP2143983': (
        'a share or replica that its back end does not know ends in '
        'error_deleting, since its disk may be out of place; it can be '
        'deleted by force'
    ),
    'snapshot-inherit.1': (
        'the drivers of this service do not report the capability, so that '
        'no share has it; a driver that does applies the rules of a share '
        'to its snapshots'
    ),
}
"""Facts of the published release notes that do not hold, by their ids."""


UNWRITTEN_DETAILS = {
    '005': 'a replica is refused at once unless the active one is available',
    '012': 'there is no JSON filter',
    '027': 'networks are ranges in the configuration, without a quota of ports',
    '031': 'a driver is given the deletion of metadata like any other change',
    '034': 'drivers say that a configuration is not supported in their own words',
}
"""Published details that no message has."""


UNWRITTEN_ACTIONS: dict[str, str] = {}
"""Published actions that no message has."""

MISSING_STATUSES = {
    ('share / share instance', 'status', 'inactive'): (
        'the instance that a migration leaves is deleted at once'
    ),
    ('share / share instance', 'status', 'deleted'): 'the row is removed',
    ('share / share instance', 'status', 'unmanaged'): 'the row is removed',
    ('share / share instance', 'status', 'restoring'): (
        'a share is reverting, or backup_restoring'
    ),
    ('share / share instance', 'status', 'server_migrating_to'): (
        'a share that moves with its server has one row, which is server_migrating'
    ),
    (
        'share / share instance',
        'status',
        'shrinking_possible_data_loss_error',
    ): 'a share that its driver refuses to shrink stays available',
    ('share / share instance', 'access_rules_status', 'syncing'): (
        'rules that are being applied are shown as out_of_sync in every version, '
        'as in those below 2.28'
    ),
    ('snapshot / snapshot instance', 'status', 'server_migrating_to'): (
        'a snapshot that moves with its server has one row, which is server_migrating'
    ),
    ('share access rule', 'state', 'deleted'): 'the row is removed',
    ('snapshot access rule', 'state', 'deleted'): 'the row is removed',
    ('snapshot access rule', 'state', 'queued_to_update'): (
        'rules of snapshots have no level that could change'
    ),
    ('snapshot access rule', 'state', 'updating'): (
        'rules of snapshots have no level that could change'
    ),
    ('share', 'task_state', 'migration_driver_starting'): (
        'a migration by the driver is migration_starting, then '
        'migration_driver_in_progress'
    ),
    ('share', 'task_state', 'data_copying_completing'): (
        'a copy that is complete is data_copying_completed at once'
    ),
    ('share', 'task_state', 'data_copying_cancelled'): (
        'a copy that is cancelled ends with its migration, which is migration_cancelled'
    ),
    ('share', 'task_state', 'data_copying_error'): (
        'a copy that fails ends with its migration, which is migration_error'
    ),
}
"""Published statuses that no resource has, by resource and field."""

ADDED_STATUSES = {
    ('share / share instance', 'status', 'snapshotting'): (
        'a share of which a snapshot is being taken, so that nothing else changes '
        'it meanwhile'
    ),
    ('share / share instance', 'access_rules_status', 'out_of_sync'): (
        'published for the versions below 2.28 only'
    ),
    ('share', 'task_state', 'migration_cancel_in_progress'): (
        'published for share servers only'
    ),
}
"""Statuses that are not published and that clients see."""


def proves(rule: str) -> Callable[[T], T]:
    """Mark the test that fails when the difference no longer exists."""
    if rule not in RULES:
        raise LookupError(f'{rule} is not listed as a difference')
    return lambda test: test


ADDITIONAL_403 = {
    'POST /v2/share-networks/{id}/action share_network_subnet_create_check': (
        'its policy is enforced like those of all other operations'
    )
}
"""Operations that can answer 403 although the table has no such code."""

EXTENSION_PATHS = {
    '/v2/recovery/': 'resources in flight and their recovery are not part '
    'of the published API',
    '/v2/openapi.json': 'the description of the API itself',
}
"""Paths that are not in the published API and do not collide with it."""
