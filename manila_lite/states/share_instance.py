"""The status of a share instance.

Statuses and who may leave them: statuses.csv of the published API; the
rescues: the start-up reconciliation design.
"""

from manila_lite.states.machine import GONE
from manila_lite.states.machine import Ask
from manila_lite.states.machine import GiveUp
from manila_lite.states.machine import Machine
from manila_lite.states.machine import Repeat


class S:
    """The statuses of shares and share instances, spelled once."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    ERROR = 'error'
    DELETING = 'deleting'
    ERROR_DELETING = 'error_deleting'
    DEFERRED_DELETING = 'deferred_deleting'
    ERROR_DEFERRED_DELETING = 'error_deferred_deleting'
    EXTENDING = 'extending'
    EXTENDING_ERROR = 'extending_error'
    SHRINKING = 'shrinking'
    SHRINKING_ERROR = 'shrinking_error'
    ENSURING = 'ensuring'
    MIGRATING = 'migrating'
    MIGRATING_TO = 'migrating_to'
    SERVER_MIGRATING = 'server_migrating'


HIDDEN_FROM_TENANTS = frozenset(
    {S.DEFERRED_DELETING, S.ERROR_DEFERRED_DELETING})
"""Deferred deletion has given the share up as far as its project sees.

Its quota is free already, so nothing may bring such a share back.
"""

DELETABLE = frozenset({S.AVAILABLE, S.ERROR})

_KEPT = frozenset(
    status for name, status in vars(S).items()
    if not name.startswith('_')) - HIDDEN_FROM_TENANTS

# fmt: off
MACHINE = Machine(
    'share_instance', 'share_instances',
    born={'create': S.CREATING},
    moves=[
        # event            from                           to
        ('created',        {S.CREATING},                  S.AVAILABLE),
        ('create_failed',  {S.CREATING},                  S.ERROR),

        ('extend',         {S.AVAILABLE},                 S.EXTENDING),
        ('extended',       {S.EXTENDING},                 S.AVAILABLE),
        ('extend_refused', {S.EXTENDING},                 S.AVAILABLE),
        ('extend_failed',  {S.EXTENDING},                 S.EXTENDING_ERROR),

        ('shrink',         {S.AVAILABLE},                 S.SHRINKING),
        ('shrunk',         {S.SHRINKING},                 S.AVAILABLE),
        ('shrink_refused', {S.SHRINKING},                 S.AVAILABLE),
        ('shrink_failed',  {S.SHRINKING},                 S.SHRINKING_ERROR),

        ('ensure',         {S.AVAILABLE},                 S.ENSURING),
        ('ensured',        {S.ENSURING},                  S.AVAILABLE),
        ('ensure_failed',  {S.ENSURING},                  S.ERROR),

        ('delete',         DELETABLE,                     S.DELETING),
        ('force_delete',   _KEPT,                         S.DELETING),
        ('delete_failed',  {S.DELETING},                  S.ERROR_DELETING),
        ('defer_delete',   DELETABLE,             S.DEFERRED_DELETING),
        ('retry_deferred', {S.ERROR_DEFERRED_DELETING},
                                                  S.DEFERRED_DELETING),
        ('deferred_delete_failed', {S.DEFERRED_DELETING},
                                            S.ERROR_DEFERRED_DELETING),
        ('deleted',        {S.DELETING, S.DEFERRED_DELETING}, GONE),

        ('migration_lost', {S.MIGRATING, S.MIGRATING_TO,
                            S.SERVER_MIGRATING},          S.ERROR),
    ],
    resets={
        S.CREATING, S.AVAILABLE, S.DELETING, S.ERROR, S.ERROR_DELETING,
        S.MIGRATING, S.MIGRATING_TO, S.SERVER_MIGRATING,
    },
    final=HIDDEN_FROM_TENANTS,
    at_rest={
        S.AVAILABLE, S.ERROR, S.ERROR_DELETING,
        S.ERROR_DEFERRED_DELETING, S.EXTENDING_ERROR, S.SHRINKING_ERROR,
    },
    in_flight={
        S.CREATING: Ask('get_share_status', 'created', 'create_failed'),
        S.EXTENDING: Ask('get_share_status', 'extended', 'extend_failed'),
        S.SHRINKING: Ask('get_share_status', 'shrunk', 'shrink_failed'),
        # Ensuring changes no data: the share is as available as before.
        S.ENSURING: GiveUp('ensured'),
        S.DELETING: Repeat('provisioning.delete_share_instance',
                           'deleted', 'delete_failed'),
        S.DEFERRED_DELETING: Repeat(
            'provisioning.delete_share_instance_deferred',
            'deleted', 'deferred_delete_failed'),
        S.MIGRATING: GiveUp('migration_lost'),
        S.MIGRATING_TO: GiveUp('migration_lost'),
        S.SERVER_MIGRATING: GiveUp('migration_lost'),
    },
)
# fmt: on
