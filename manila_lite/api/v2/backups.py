"""Backups of shares, and their actions."""

import typing

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, fields, fn
from manila_lite.api.filters import exact
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import targets
from manila_lite.api.v2.groups import Criteria
from manila_lite.db import rows
from manila_lite.db.queries import pages, share_backups

_LONGEST_TYPE = 32  # that of the published column
_NAME = s.string(255, nullable=True)

CREATE = s.schema(
    ['share_id'],
    wrapper='share_backup',
    share_id=s.uuid,
    name=_NAME,
    description=_NAME,
    backup_options=s.obj(
        extra='allow',
        nullable=True,
        backup_type=s.string(_LONGEST_TYPE, 1, nullable=True),
    ),
)

UPDATE = s.schema(wrapper='share_backup', name=_NAME, description=_NAME)


_TARGET = s.Schema(s.optional_id(36), None, 400)
"""The id of the share to restore to, or null for that of the backup."""

SUMMARY = fields(Field('id'), Field('name'), Field('share_id'), Field('status'))


def _percent(value: int) -> str:
    return str(value)


DETAIL = fields(
    Field('id'),
    Field('name'),
    Field('share_id'),
    Field('status'),
    Field('description'),
    Field('size'),
    Field('created_at'),
    Field('updated_at'),
    Field('availability_zone'),
    Field('progress', fn(_percent, 'progress')),
    Field('restore_progress', fn(_percent, 'restore_progress')),
    Field('backup_type', since='2.85'),
    Field('host', admin_only=True),
    Field('topic', admin_only=True),
)

_ADMIN_KEYS = ('host', 'topic')

_CRITERIA = Criteria(
    *exact(*share_backups.FILTERS, admin_only=_ADMIN_KEYS),
    all_projects='share_backup:get_all_project',
)

_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.InvalidShare,
    exception.ShareHasReplicas: exception.InvalidShare,
}


class ShareBackupsController(paging.ListController):
    target = targets.BACKUP.loader

    path = 'share-backups'
    key = 'share_backups'
    links_key = 'share_backup_links'
    summary = SUMMARY
    details = DETAIL
    filters = _CRITERIA.query
    sort_keys = {name: name for name in share_backups.SORT_KEYS}
    admin_sort_keys = _ADMIN_KEYS
    policies = dict.fromkeys(('index', 'detail'), 'share_backup:get_all')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return pages.Listing(
            self.services.db.read(
                share_backups.list_backups, *_CRITERIA.parse(req), page
            ),
            {},
        )

    @wsgi.method('share_backup:get', target=True, answer={'share_backup': DETAIL})
    def show(self, req: wsgi.Request, backup: rows.ShareBackupRow) -> dict:
        return _response(req, backup)

    @wsgi.method(
        'share_backup:create',
        body=CREATE,
        status=202,
        refused=_REFUSED,
        answer={'share_backup': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Request a backup of a share, from its driver if it has options."""
        with targets.named_in_body():
            share = _own_share(self.services, req, args['share_id'])
        backup_id = self.services.share_backups.create(
            req.ctx,
            share,
            name=args.get('name'),
            description=args.get('description'),
            options=args.get('backup_options'),
        )
        return _response(req, self.services.db.read(share_backups.get, backup_id))

    @wsgi.method(
        'share_backup:update', target=True, body=UPDATE, answer={'share_backup': DETAIL}
    )
    def update(
        self, req: wsgi.Request, backup: rows.ShareBackupRow, args: dict
    ) -> dict:
        self.services.share_backups.update(req.ctx, backup.id, args)
        return _response(req, self.services.db.read(share_backups.get, backup.id))

    @wsgi.method(
        'share_backup:delete',
        target=True,
        status=202,
        refused={exception.InvalidStatus: exception.InvalidBackup},
    )
    def delete(self, req: wsgi.Request, backup: rows.ShareBackupRow) -> None:
        self.services.share_backups.delete(req.ctx, backup)


class ShareBackupActionsController(wsgi.Controller):
    target = targets.BACKUP.loader

    @wsgi.action(
        'restore',
        'share_backup:restore',
        until='2.90',
        refused=_REFUSED,
        answer={'restore': {'backup_id': str, 'share_id': str}},
    )
    def restore(self, req: wsgi.Request, backup: rows.ShareBackupRow) -> dict:
        """Request that the share gets the content of its backup."""
        return self._restore(req, backup, backup.share_id)

    @wsgi.action(
        'restore',
        'share_backup:restore',
        since='2.91',
        body=_TARGET,
        refused=_REFUSED,
        answer={'restore': {'backup_id': str, 'share_id': str}},
    )
    def restore_to(
        self, req: wsgi.Request, backup: rows.ShareBackupRow, share_id: str | None
    ) -> dict:
        """Request that a share gets the content of a backup."""
        return self._restore(req, backup, share_id or backup.share_id)

    def _restore(
        self, req: wsgi.Request, backup: rows.ShareBackupRow, share_id: str
    ) -> dict:
        share = _own_share(self.services, req, share_id)
        self.services.share_backups.restore(req.ctx, backup, share)
        return {'restore': {'backup_id': backup.id, 'share_id': share.id}}

    @wsgi.action('reset_status', 'share_backup:reset_status', body=s.STATUS)
    def reset_status(
        self, req: wsgi.Request, backup: rows.ShareBackupRow, args: dict
    ) -> None:
        self.services.share_backups.reset_status(req.ctx, backup.id, args['status'])


def _own_share(
    services: ApiServices, req: wsgi.Request, share_id: str
) -> rows.ShareTarget:
    """Return a share of the project, or of any for administrators.

    The public shares of other projects are not found.
    """
    share = targets.SHARE.get(services.db, req.ctx, share_id)
    if not targets.is_of_project(req.ctx, typing.cast(typing.Any, share)):
        raise exception.ShareNotFound(share_id=share_id)
    return share


def _response(req: wsgi.Request, backup: rows.ShareBackupRow) -> dict:
    return {'share_backup': DETAIL.function(req.minor, req.ctx.is_admin)(backup)}
