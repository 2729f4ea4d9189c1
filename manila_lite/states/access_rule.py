"""The state of an access rule on an instance, and `access_rules_status`.

Both machines follow the access rules design: the state of a rule on a
share instance (or on a snapshot instance), and `access_rules_status` of
the share instance, which sums up the states of its rules.
"""

from collections.abc import Iterable

from manila_lite.states.machine import GONE, Machine, Resume
from manila_lite.states.share_instance import (
    HIDDEN_FROM_TENANTS,
    SHARE_INSTANCE,
    InstanceStatus,
)


class RuleState:
    """The states of access rules, spelled once."""

    QUEUED_TO_APPLY = 'queued_to_apply'
    APPLYING = 'applying'
    ACTIVE = 'active'
    ERROR = 'error'
    QUEUED_TO_UPDATE = 'queued_to_update'
    UPDATING = 'updating'
    QUEUED_TO_DENY = 'queued_to_deny'
    DENYING = 'denying'


# Short in the table only.
A = RuleState

ALL = frozenset(
    state for name, state in vars(RuleState).items() if not name.startswith('_')
)
IN_TRANSIT = frozenset({A.APPLYING, A.UPDATING, A.DENYING})
DENIED = frozenset({A.QUEUED_TO_DENY, A.DENYING})
"""The states of a rule that has been denied, and is to be removed."""

STATES_BY_RANK = (
    A.ERROR,
    A.QUEUED_TO_APPLY,
    A.QUEUED_TO_UPDATE,
    A.QUEUED_TO_DENY,
    A.APPLYING,
    A.UPDATING,
    A.DENYING,
    A.ACTIVE,
)
"""A rule with several states is shown with the first of them here."""

RULES_EDITABLE = (
    SHARE_INSTANCE.at_rest - HIDDEN_FROM_TENANTS - {InstanceStatus.AWAITING_TRANSFER}
)
"""The statuses in which the rules of an instance may be changed.

The rules of a share that is offered to another project are those that the
project accepts, or has removed.
"""

LEAVING = HIDDEN_FROM_TENANTS | {
    InstanceStatus.DELETING,
    InstanceStatus.UNMANAGE_STARTING,
}
"""The statuses in which an instance is removed together with its rules."""

SYNC_EXCLUDED = LEAVING | {
    InstanceStatus.CREATING,
    InstanceStatus.CREATING_FROM_SNAPSHOT,
}
"""The statuses in which rules are not sent to the back end separately.

A new replica starts with rules, and the work that creates it sends them.
"""


_CHANGED = frozenset({A.QUEUED_TO_UPDATE, A.UPDATING})

# fmt: off
_LEVEL_MOVES = [
    # event            from                           to
    # A rule may be changed or denied while the back end still applies it;
    # the outcome of the earlier request is then ignored.
    ('change',         {A.ACTIVE, A.ERROR, A.APPLYING, A.UPDATING},
                                                      A.QUEUED_TO_UPDATE),
    ('update',         {A.QUEUED_TO_UPDATE},          A.UPDATING),
    ('updated',        {A.UPDATING},                  A.ACTIVE),
    ('update_failed',  {A.UPDATING},                  A.ERROR),
    ('requeue_update', {A.UPDATING},                  A.QUEUED_TO_UPDATE),
]
# fmt: on


def _rules(resource: str, table: str, kind: str, *, levels: bool = True) -> Machine:
    """Return the machine of rules that work of this kind applies.

    Without levels there is nothing about a rule that can change.
    """
    states = ALL if levels else ALL - _CHANGED
    rescues = {
        A.QUEUED_TO_APPLY: Resume(kind),
        A.QUEUED_TO_UPDATE: Resume(kind),
        A.QUEUED_TO_DENY: Resume(kind),
        A.APPLYING: Resume(kind, 'requeue_apply'),
        A.UPDATING: Resume(kind, 'requeue_update'),
        A.DENYING: Resume(kind, 'requeue_deny'),
    }
    # fmt: off
    return Machine(
        resource, table, column='state',
        initial={'allow': A.QUEUED_TO_APPLY},
        moves=[
            # event           from                    to
            ('apply',         {A.QUEUED_TO_APPLY},    A.APPLYING),
            ('applied',       {A.APPLYING},           A.ACTIVE),
            ('apply_failed',  {A.APPLYING},           A.ERROR),
            ('requeue_apply', {A.APPLYING},           A.QUEUED_TO_APPLY),
            # The back end of the replica is in reach again.
            ('reapply',       {A.ERROR},              A.QUEUED_TO_APPLY),

            *(_LEVEL_MOVES if levels else ()),

            ('deny',          states - DENIED,        A.QUEUED_TO_DENY),
            ('withdraw',      {A.QUEUED_TO_DENY},     A.DENYING),
            ('denied',        {A.DENYING},            GONE),
            ('deny_failed',   {A.DENYING},            A.ERROR),
            ('requeue_deny',  {A.DENYING},            A.QUEUED_TO_DENY),

            # The back end reports that an active rule has failed.
            ('broke',         {A.ACTIVE},             A.ERROR),

            # The instance itself is removed.
            ('removed',       states,                 GONE),
        ],
        at_rest={A.ACTIVE, A.ERROR},
        in_flight={state: rescue for state, rescue in rescues.items()
                   if state in states},
    )
    # fmt: on


ACCESS_RULE = _rules('access_rule', 'share_instance_access_map', 'access.sync_access')

SNAPSHOT_ACCESS_RULE = _rules(
    'snapshot_access_rule',
    'share_snapshot_instance_access_map',
    'snapshot_access.sync_snapshot_access',
    levels=False,
)


class RulesStatus:
    """The values of `access_rules_status`, spelled once."""

    ACTIVE = 'active'
    OUT_OF_SYNC = 'out_of_sync'
    ERROR = 'error'


# Short in the table only.
R = RulesStatus


def aggregate_status(instances: Iterable[tuple[str, str]]) -> str:
    """Return the `access_rules_status` that a share is shown with.

    Of each instance, the status and that of its rules are given; those that
    are not available are skipped.
    """
    found = {
        rules_status
        for status, rules_status in instances
        if status == InstanceStatus.AVAILABLE
    }
    return next(
        (status for status in (R.ERROR, R.OUT_OF_SYNC) if status in found), R.ACTIVE
    )


# fmt: off
SHARE_INSTANCE_ACCESS = Machine(
    'share_instance_access', 'share_instances',
    column='access_rules_status',
    initial={'create': R.ACTIVE},
    moves=[
        # event     from                            to
        ('change',  {R.ACTIVE},                     R.OUT_OF_SYNC),
        ('synced',  {R.OUT_OF_SYNC},                R.ACTIVE),
        ('failed',  {R.ACTIVE, R.OUT_OF_SYNC},      R.ERROR),
        # No rule in error is left.
        ('cleared', {R.ERROR},                      R.ACTIVE),
    ],
    at_rest={R.ACTIVE, R.ERROR},
    in_flight={R.OUT_OF_SYNC: Resume('access.sync_access')},
)
# fmt: on
