"""Access of projects to private share types and share group types."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.api import answers, schema, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import (
    records as share_type_records,
    types as share_types,
)
from manila_lite.db.queries.types.tables import TypeTables
from manila_lite.db.rows import TypeAccessRow
from manila_lite.db.session import Session

PROJECT = schema.schema(
    ['project'],
    project=schema.string(
        255, 1, pattern='[A-Za-z0-9_.@+-]{1,255}', description='a project id'
    ),
)
OF_KEYSTONE = schema.schema(['project'], project=schema.uuid)
"""The ids of projects of Keystone, so that a name is refused."""


class TypeRecord(typing.Protocol):
    """A type that is public or private."""

    @property
    def is_public(self) -> bool: ...


def _answer(controller: type['TypeAccessController']) -> answers.Shape:
    item = {controller.tables.type_key: str, 'project_id': str}
    return {controller.response_key: [item]}


class TypeAccessController(wsgi.Controller):
    """Base of controllers for the projects of private types.

    Subclasses name the tables, the function that reads a type the caller
    may see, the key of the response, the kind of types for errors, and the
    policies to `list`, `add` and `remove`.
    """

    tables: TypeTables
    get_type: typing.Callable[[Session, RequestContext, str], TypeRecord]
    response_key: str
    kind: str

    def __init__(self, services: wsgi.ApiServices):
        super().__init__(services)
        self._item = fields(Field(self.tables.type_key), Field('project_id'))

    @wsgi.method('list', answer=_answer)
    def index(self, req: wsgi.Request, type_id: str) -> dict:
        """List the projects that may use the type."""
        rows = self.services.db.read(self._list, req.ctx, type_id)
        return {self.response_key: self._item.many(req.minor)(rows)}

    def _list(
        self, session: Session, ctx: RequestContext, id: str
    ) -> Sequence[TypeAccessRow]:
        if self.get_type(session, ctx, id).is_public:
            raise exception.NotFound(
                f'{self.kind} {id} is public and has no access list.'
            )
        return self.tables.list_accesses(session, id)

    @wsgi.action('addProjectAccess', policy='add', target=None, body=PROJECT)
    def add(self, req: wsgi.Request, args: dict, type_id: str) -> None:
        """Allow a project to use the type."""
        self._check_project(req, args, 'addProjectAccess')
        self.services.db.write(
            self.tables.add_access, type_id, args['project'], by=req.ctx
        )

    @wsgi.action('removeProjectAccess', policy='remove', target=None, body=PROJECT)
    def remove(self, req: wsgi.Request, args: dict, type_id: str) -> None:
        """Withdraw the access of a project."""
        self._check_project(req, args, 'removeProjectAccess')
        self.services.db.write(
            self.tables.remove_access, type_id, args['project'], by=req.ctx
        )

    def _check_project(self, req: wsgi.Request, args: dict, action: str) -> None:
        """Refuse what is not an id in this installation."""
        if self.services.conf.auth_strategy == 'keystone':
            OF_KEYSTONE.check(args, req.minor, action)


class ShareTypeAccessController(TypeAccessController):
    tables = share_types.TABLES
    get_type = staticmethod(share_type_records.get)
    response_key = 'share_type_access'
    kind = 'Share type'
    policies = {
        'list': 'share_type:list_project_access',
        'add': 'share_type:add_project_access',
        'remove': 'share_type:remove_project_access',
    }
