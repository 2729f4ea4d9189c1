"""Actions that migrate share servers, for administrators.

Published clients send the experimental header, but it is not required. The API
shows the names of task states that published clients expect, and accepts both
these and the names of `TaskState`, which are used everywhere else.
"""

import functools
import typing

from manila_lite import exception
from manila_lite.api import answers, schema as s, wsgi
from manila_lite.api.fields import timestamp
from manila_lite.db import rows
from manila_lite.share.operations.servers.migration_checks import MigrationOptions
from manila_lite.share.operations.servers.migrations import (
    CAPABILITIES,
    OPTIONAL_OPERATIONS,
)
from manila_lite.states.share_server import TaskState

WIRE_NAMES: dict[str, str | None] = {
    TaskState.NONE: None,
    TaskState.STARTING: 'migration_starting',
    TaskState.MIGRATING: 'migration_driver_in_progress',
    TaskState.PHASE1_DONE: 'migration_driver_phase1_done',
    TaskState.COMPLETING: 'migration_completing',
    TaskState.CANCELLING: 'migration_cancel_in_progress',
    TaskState.COMPLETED: 'migration_success',
    TaskState.CANCELLED: 'migration_cancelled',
    TaskState.ERROR: 'migration_error',
}

_TASK_STATES = {name: task_state for task_state, name in WIRE_NAMES.items()}


def task_state_to_wire(stored: str | None) -> str | None:
    """Return the wire name of a value of the column `task_state`."""
    return None if stored is None else WIRE_NAMES[stored]


def task_state_from_wire(name: str | None) -> str | None:
    """Return the `TaskState` of either name, or None for other names.

    Null is `TaskState.NONE`, the state without a migration.
    """
    if name in _TASK_STATES:
        return _TASK_STATES[name]
    return name if name in WIRE_NAMES and name != TaskState.NONE else None


MIGRATE = s.schema(
    ['host', *CAPABILITIES],
    host=s.string(255, 1),
    writable=s.boolean,
    nondisruptive=s.boolean,
    preserve_snapshots=s.boolean,
    new_share_network_id=s.optional_id(36),
)
TASK_STATE = s.schema(['task_state'], task_state=s.string(255, 1, nullable=True))


_CHECKED: answers.Shape = {
    'compatible': bool,
    'requested_capabilities': {
        **dict.fromkeys(CAPABILITIES, bool),
        'share_network_id': str | None,
        'host': str,
    },
    'supported_capabilities': {
        **dict.fromkeys((*CAPABILITIES, *OPTIONAL_OPERATIONS), bool),
        'share_network_id': str | None,
    },
    'reasons': list[str],
}
_PROGRESS: answers.Shape = {
    'total_progress': int | None,
    'details': dict | None,
    'task_state': str | None,
    'destination_share_server_id': str,
    'phase': int | None,
    'last_heard_at': str | None,
}


_action = functools.partial(wsgi.action, since='2.57')


class ShareServerMigrationsController(wsgi.Controller):
    """The actions of share servers that concern migration."""

    @_action(
        'migration_check',
        'share_server:share_server_migration_check',
        status=200,
        body=MIGRATE,
        answer=_CHECKED,
    )
    def migration_check(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> dict:
        """Check whether a server can be migrated; `reasons` say why not."""
        options = MigrationOptions(**_migration_options(args))
        found = self.services.server_migrations.check(req.ctx, server.id, options)
        return {
            'compatible': found.compatible,
            'requested_capabilities': {
                **{name: getattr(options, name) for name in CAPABILITIES},
                'share_network_id': options.new_share_network_id,
                'host': options.dest_host,
            },
            'supported_capabilities': {
                **{
                    name: found.supported[name]
                    for name in (*CAPABILITIES, *OPTIONAL_OPERATIONS)
                },
                'share_network_id': found.share_network_id,
            },
            'reasons': found.reasons,
        }

    @_action(
        'migration_start', 'share_server:share_server_migration_start', body=MIGRATE
    )
    def migration_start(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        """Request the migration of a server and everything on it."""
        self.services.server_migrations.start(
            req.ctx, server.id, MigrationOptions(**_migration_options(args))
        )

    @_action(
        'migration_complete',
        'share_server:share_server_migration_complete',
        status=200,
        answer={'destination_share_server_id': str},
    )
    def migration_complete(self, req: wsgi.Request, server: rows.ServerTarget) -> dict:
        """Request the second phase, when the first is done."""
        return {
            'destination_share_server_id': (
                self.services.server_migrations.complete(req.ctx, server.id)
            )
        }

    @_action('migration_cancel', 'share_server:share_server_migration_cancel')
    def migration_cancel(self, req: wsgi.Request, server: rows.ServerTarget) -> None:
        """Request that a migration is cancelled and rolled back."""
        self.services.server_migrations.cancel(req.ctx, server.id)

    @_action(
        'migration_get_progress',
        'share_server:share_server_migration_get_progress',
        status=200,
        target=False,
        answer=_PROGRESS,
    )
    def migration_get_progress(self, req: wsgi.Request, share_server_id: str) -> dict:
        """Return the progress of a migration; the source may be gone.

        `total_progress` is null if it is not known; `details` is what else
        the back end has reported and `last_heard_at` the time of its last
        reply.
        """
        found = self.services.server_migrations.progress(req.ctx, share_server_id)
        return {
            'total_progress': found.total,
            'details': found.details,
            'task_state': task_state_to_wire(found.task_state),
            'destination_share_server_id': found.destination_server_id or '',
            'phase': found.phase,
            'last_heard_at': timestamp(found.heard_at),
        }

    @_action(
        'reset_task_state',
        'share_server:share_server_reset_task_state',
        body=TASK_STATE,
    )
    def reset_task_state(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        task_state = task_state_from_wire(args['task_state'])
        if task_state is None:
            raise exception.InvalidInput(
                reason=f'task_state {args["task_state"]!r} is not a state of '
                'a share server migration'
            )
        self.services.server_migrations.reset_task_state(req.ctx, server.id, task_state)


def _migration_options(args: dict) -> dict[str, typing.Any]:
    return {
        'dest_host': args['host'],
        'new_share_network_id': args.get('new_share_network_id'),
        **{name: args[name] for name in CAPABILITIES},
    }
