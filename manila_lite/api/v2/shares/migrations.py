"""Actions that migrate shares, and their progress, for administrators."""

import functools
import typing

from manila_lite import exception
from manila_lite.api import answers, schema as s, wsgi
from manila_lite.api.fields import timestamp
from manila_lite.api.v2 import targets
from manila_lite.db import rows
from manila_lite.share.operations.shares.migrations import ShareMigrationOptions

DETAILS_SINCE = 59
"""The minor version since which details of the driver are shown."""

CAPABILITIES = ('writable', 'nondisruptive', 'preserve_metadata', 'preserve_snapshots')

MIGRATE = s.schema(
    ['host', *CAPABILITIES],
    host=s.string(255, 1),
    writable=s.boolean,
    nondisruptive=s.boolean,
    preserve_metadata=s.boolean,
    preserve_snapshots=s.boolean,
    force_host_assisted_migration=s.boolean,
    new_share_network_id=s.optional_id(36),
    new_share_type_id=s.optional_id(36),
)
TASK_STATE = s.schema(['task_state'], task_state=s.string(255, 1, nullable=True))
_PROGRESS: answers.Shape = {
    'total_progress': int,
    'task_state': str,
    'last_heard_at': str | None,
    answers.MayLack('details'): dict,
}
REFUSED: wsgi.Refusals = {exception.InvalidStatus: exception.InvalidShare}


_action = functools.partial(wsgi.action, since='2.22', experimental='2.22-2.95')


class ShareMigrationActionsController(wsgi.Controller):
    """The actions of shares that concern migration."""

    @wsgi.action(
        'migration_start',
        'share:migration_start',
        since='2.29',
        experimental='2.29-2.95',
        body=MIGRATE,
        refused=REFUSED,
        unchanged=200,
    )
    def migration_start(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> wsgi.Response | None:
        """Request the migration of a share; 200 if it is there already."""
        options = ShareMigrationOptions(
            dest_host=args['host'],
            force_host_assisted=args.get('force_host_assisted_migration', False),
            new_share_network_id=args.get('new_share_network_id'),
            new_share_type_id=args.get('new_share_type_id'),
            **{name: args[name] for name in CAPABILITIES},
        )
        if self.services.share_migrations.start(req.ctx, share, options):
            return None
        return wsgi.Response(status=200)

    @_action('migration_complete', 'share:migration_complete', refused=REFUSED)
    def migration_complete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        """Request the second phase, when the first is done."""
        self.services.share_migrations.complete(req.ctx, share)

    @_action('migration_cancel', 'share:migration_cancel', refused=REFUSED)
    def migration_cancel(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        """Request that a migration is cancelled and rolled back."""
        self.services.share_migrations.cancel(req.ctx, share)

    @_action(
        'migration_get_progress',
        'share:migration_get_progress',
        until='2.97',
        status=200,
        answer=_PROGRESS,
    )
    def migration_get_progress(
        self, req: wsgi.Request, share: rows.ShareTarget
    ) -> dict:
        """Return the progress of the latest migration of a share.

        `last_heard_at` is the time of the last reply of the back end.
        """
        return self._progress(req, share)

    @_action('reset_task_state', 'share:reset_task_state', body=TASK_STATE)
    def reset_task_state(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> None:
        """Set the state of a migration; null removes that of an ended one.

        The official client sends null with every change of a share.
        """
        self.services.share_migrations.reset_task_state(
            req.ctx, share, args['task_state']
        )

    def _progress(
        self, req: wsgi.Request, share: rows.ShareTarget
    ) -> dict[str, typing.Any]:
        found = self.services.share_migrations.progress(req.ctx, share)
        shown: dict[str, typing.Any] = {
            'total_progress': found.total,
            'task_state': found.task_state,
            'last_heard_at': timestamp(found.heard_at),
        }
        if req.minor >= DETAILS_SINCE:
            shown['details'] = found.details
        return shown


class ShareMigrationController(ShareMigrationActionsController):
    """The progress of the migration of a share, as a resource."""

    target = targets.SHARE.loader

    @wsgi.method('share:migration_get_progress', target=True, answer=_PROGRESS)
    def show(self, req: wsgi.Request, share: rows.ShareTarget) -> dict:
        return self._progress(req, share)
