"""Share servers: list, show, manage, delete, and their migration."""

from collections.abc import Mapping
import functools
import typing

from manila_lite import exception
from manila_lite.api import answers, paging, schema as s, wsgi
from manila_lite.api.fields import Field, child, fields, fn, fn2, timestamp
from manila_lite.api.filters import Filter, exact
from manila_lite.api.v2 import targets
from manila_lite.db import rows
from manila_lite.db.queries.servers import views as server_views
from manila_lite.share.operations.servers.migration_checks import MigrationOptions
from manila_lite.share.operations.servers.migrations import (
    CAPABILITIES,
    OPTIONAL_OPERATIONS,
)
from manila_lite.share.operations.servers.share_servers import ManageServerRequest
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


MANAGE = s.schema(
    ['host', 'share_network_id', 'identifier'],
    wrapper='share_server',
    host=s.string(255, 1),
    share_network_id=s.trimmed(36, 1),
    share_network_subnet_id=s.since('2.51', s.optional_id(36)),
    identifier=s.string(255, 1),
    driver_options=s.obj(extra='allow', nullable=True),
)

_EXACT = ('host', 'status', 'share_network_id', 'identifier', 'source_share_server_id')
_FLAGS = (
    'is_auto_deletable',
    'security_service_update_support',
    'network_allocation_update_support',
    'share_replicas_migration_support',
)


def _first_subnet(row: rows.IdRow, more: Mapping[str, typing.Any]) -> str | None:
    """Return one subnet, for versions with a single subnet per server."""
    return next(iter(more['subnets'].get(row.id, ())), None)


_OF_ALL = (
    Field('id'),
    Field('project_id'),
    Field('updated_at'),
    Field('status'),
    Field('host'),
    Field('share_network_name'),
    Field('share_network_id'),
    Field('is_auto_deletable', since='2.49'),
    Field('identifier', since='2.49'),
    Field('share_network_subnet_id', fn2(_first_subnet), since='2.51', until='2.69'),
    Field('task_state', fn(task_state_to_wire, 'task_state'), since='2.57'),
    Field('source_share_server_id', since='2.57'),
    Field('security_service_update_support', since='2.63'),
    Field(
        'share_network_subnet_ids', child('subnets', []), shape=list[str], since='2.70'
    ),
    Field('network_allocation_update_support', since='2.70'),
    Field('encryption_key_ref', since='2.90'),
)

SUMMARY = fields(*_OF_ALL)

DETAIL = fields(
    *_OF_ALL,
    Field('created_at'),
    Field('backend_details', child('details'), shape=dict[str, str | None]),
)


_QUERY = (
    *exact(
        *_EXACT, 'task_state', 'project_id', 'share_network', 'share_network_subnet_id'
    ),
    *(Filter(flag, parse=paging.parse_flag) for flag in _FLAGS),
    paging.MARKER,
)


class ShareServersController(wsgi.Controller):
    target = targets.SERVER.loader

    @wsgi.method(
        'share_server:index', answer={'share_servers': [SUMMARY]}, query=_QUERY
    )
    def index(self, req: wsgi.Request) -> dict:
        found = self.services.db.read(
            server_views.list_servers, parse_filter(req.query)
        )
        view = SUMMARY.many(req.minor, True)
        items = view(found.rows, found.children)
        return {'share_servers': paging.behind_marker(req, items)}

    @wsgi.method('share_server:show', answer={'share_server': DETAIL})
    def show(self, req: wsgi.Request, share_server_id: str) -> dict:
        return self._response(req, share_server_id)

    def _response(self, req: wsgi.Request, share_server_id: str) -> dict:
        found = self.services.db.read(server_views.get, share_server_id)
        view = DETAIL.function(req.minor, True)
        return {'share_server': view(found.rows[0], found.children)}

    @wsgi.method(
        'share_server:details', target=True, answer={'details': dict[str, str | None]}
    )
    def details(self, req: wsgi.Request, server: rows.ServerTarget) -> dict:
        """Return the back-end details that the driver stored."""
        return {
            'details': self.services.db.read(
                server_views.get_backend_details, server.id
            )
        }

    @wsgi.method(
        'share_server:delete',
        target=True,
        status=202,
        refused={exception.InvalidStatus: exception.Forbidden},
    )
    def delete(self, req: wsgi.Request, server: rows.ServerTarget) -> None:
        self.services.share_servers.delete(req.ctx, server)

    @wsgi.method(
        'share_server:manage_share_server',
        body=MANAGE,
        status=202,
        # The published code for unknown resources in a body is 400.
        refused={
            exception.ShareNetworkNotFound: exception.InvalidInput,
            exception.ServiceNotFound: exception.InvalidInput,
        },
        answer={'share_server': DETAIL},
    )
    def manage(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a server; responds before the back end is asked."""
        server_id = self.services.share_servers.manage(
            req.ctx,
            ManageServerRequest(
                host=args['host'],
                identifier=args['identifier'],
                share_network_id=args['share_network_id'],
                share_network_subnet_id=args.get('share_network_subnet_id'),
                driver_options=args.get('driver_options') or {},
            ),
        )
        return self._response(req, server_id)


def parse_filter(query: typing.Mapping[str, str]) -> server_views.ShareServerFilter:
    """Return the filter of a query.

    With an unknown key no server matches (notes: Filters).
    """
    found = server_views.ShareServerFilter()
    for key, value in query.items():
        if key in _EXACT:
            found.exact[key] = value
        elif key in _FLAGS:
            found.exact[key] = paging.parse_flag(query, key)
        elif key == 'task_state':
            _by_task_state(found, value)
        elif key == 'project_id':
            found.project_id = value
        elif key == 'share_network':
            found.network = value
        elif key == 'share_network_subnet_id':
            found.subnet_id = value
        elif key != paging.MARKER.key:
            found.match_nothing = True
    return found


def _by_task_state(found: server_views.ShareServerFilter, word: str) -> None:
    name = task_state_from_wire(word)
    if name is None or name == TaskState.NONE:
        found.match_nothing = True
    else:
        found.exact['task_state'] = name


UNMANAGE = s.schema(force=s.boolean)


class ShareServerActionsController(ShareServerMigrationsController):
    target = targets.SERVER.loader

    @wsgi.action(
        'unmanage',
        'share_server:unmanage_share_server',
        since='2.49',
        body=UNMANAGE,
        refused={
            exception.InvalidStatus: exception.InvalidShareServer,
            # The published code of this error is 400 for unmanage.
            exception.ShareServerInUse: exception.InvalidShareServer,
        },
    )
    def unmanage(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        """Request that a server is unmanaged; it stays on the back end."""
        self.services.share_servers.unmanage(
            req.ctx, server, force=args.get('force', False)
        )

    @wsgi.action(
        'reset_status', 'share_server:reset_status', since='2.49', body=s.STATUS
    )
    def reset_status(
        self, req: wsgi.Request, server: rows.ServerTarget, args: dict
    ) -> None:
        self.services.share_servers.reset_status(req.ctx, server, args['status'])
