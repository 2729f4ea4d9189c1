"""Access of projects to private share types."""

from collections.abc import Sequence

from manila_lite import exception
from manila_lite.api import schema
from manila_lite.api import wsgi
from manila_lite.api.fields import Field
from manila_lite.api.fields import fields
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import records as share_type_records
from manila_lite.db.rows import TypeAccessRow
from manila_lite.db.session import Session

PROJECT = schema.schema(['project'], project=schema.uuid)

ITEM = fields(Field('share_type_id'), Field('project_id'))


def _list(
    session: Session, ctx: RequestContext, id: str
) -> Sequence[TypeAccessRow]:
    if share_type_records.get(session, ctx, id).is_public:
        raise exception.NotFound(
            f'Share type {id} is public and has no access list.'
        )
    return share_type_records.list_accesses(session, id)


class ShareTypeAccessController(wsgi.Controller):
    @wsgi.method('share_type:list_project_access')
    def index(self, req: wsgi.Request, type_id: str) -> dict:
        """List the projects that may use the type."""
        rows = self.services.db.read(_list, req.ctx, type_id)
        return {'share_type_access': ITEM.many(req.minor)(rows)}

    @wsgi.action(
        'addProjectAccess',
        policy='share_type:add_project_access',
        target=None,
        body=PROJECT,
    )
    def add(self, req: wsgi.Request, args: dict, type_id: str) -> None:
        """Allow a project to use the type."""
        self.services.db.write(
            share_type_records.add_access, type_id, args['project'], by=req.ctx
        )

    @wsgi.action(
        'removeProjectAccess',
        policy='share_type:remove_project_access',
        target=None,
        body=PROJECT,
    )
    def remove(self, req: wsgi.Request, args: dict, type_id: str) -> None:
        """Withdraw the access of a project."""
        self.services.db.write(
            share_type_records.remove_access,
            type_id,
            args['project'],
            by=req.ctx,
        )
