"""What share types and share group types have in common.

Projects list those that they may use, and administrators say which projects
may use a private one.
"""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.api import answers, paging, schema, versions, wsgi
from manila_lite.api.fields import Field, View, fields, fn2
from manila_lite.api.filters import Filter
from manila_lite.api.v2 import literals
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.tables import TypeRecords, TypeTables
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


WHICH_PUBLIC = Filter('is_public', words=('all', 'none'), form=schema.BOOLEAN_WORD)


def _page(controller: type['TypesController']) -> answers.Shape:
    return {f'{key}s': [controller.item] for key in controller.keys}


def _one(controller: type['TypesController']) -> answers.Shape:
    return dict.fromkeys(controller.keys, controller.item)


def _query(controller: type['TypesController']) -> tuple:
    by_specs = Filter(
        controller.specs_key, since=controller.filters_since, parse=literals.parse
    )
    return (WHICH_PUBLIC, by_specs, paging.MARKER)


class TypesController(wsgi.Controller):
    """Base of controllers for types: list, show and the default.

    Subclasses name the records, the view, the keys of a type in bodies, the
    specs and since when they are a filter, the option with the default type
    and the error without one, and the policies to `index`, `default` and
    `show`. They declare what changes types.
    """

    records: TypeRecords[typing.Any]
    item: View
    keys: typing.ClassVar[Sequence[str]]
    specs_key: str
    filters_since: str
    default_option: str
    no_default: type[exception.ManilaLiteError]

    def __init__(self, services: wsgi.ApiServices):
        super().__init__(services)
        self._default = getattr(services.conf, self.default_option)
        self._filtered = versions.window(since=self.filters_since)

    @wsgi.method('index', answer=_page, query=_query)
    def index(self, req: wsgi.Request) -> dict:
        """List the types of the project; administrators may see others."""
        wanted = self._wanted_specs(req)
        found = self.services.db.read(
            self.records.list_types, req.ctx, is_public=_which_public(req)
        )
        items = self.item.many(req.minor)(
            [record for record in found if self.matches(req, record, wanted)],
            self._more(req),
        )
        items = paging.behind_marker(req, items)
        return {f'{key}s': items for key in self.keys}

    @wsgi.method('default', answer=_one)
    def default(self, req: wsgi.Request) -> dict:
        """Show the default type."""
        record = self._default and self.services.db.read(
            self.records.find, req.ctx, self._default
        )
        if not record:
            raise self.no_default()
        return self.response(req, record)

    @wsgi.method('show', answer=_one)
    def show(self, req: wsgi.Request, type_id: str) -> dict:
        """Show one type."""
        return self.response(
            req, self.services.db.read(self.records.get, req.ctx, type_id)
        )

    def matches(
        self, req: wsgi.Request, record: typing.Any, wanted: Mapping[str, str]
    ) -> bool:
        """Whether a type has these specs, as far as the caller may know."""
        return wanted.items() <= getattr(record, self.specs_key).items()

    def response(self, req: wsgi.Request, record: object) -> dict:
        """Return a type under each of its keys."""
        return dict.fromkeys(
            self.keys, self.item.function(req.minor)(record, self._more(req))
        )

    def _wanted_specs(self, req: wsgi.Request) -> dict[str, str]:
        if self.specs_key in req.query and req.minor not in self._filtered:
            raise exception.InvalidInput(
                reason=f'{self.specs_key} is a filter since version '
                f'{self.filters_since}'
            )
        return literals.parse(req.query, self.specs_key)

    def _more(self, req: wsgi.Request) -> dict:
        return {'minor': req.minor, 'admin': req.ctx.is_admin, 'default': self._default}


def _is_default(row: typing.Any, more: Mapping) -> bool:
    return more['default'] in (row.id, row.name)


IS_DEFAULT = Field('is_default', fn2(_is_default), since='2.46')


def _which_public(req: wsgi.Request) -> bool | None:
    """Return True for accessible types, False for private, None for all."""
    if not req.ctx.is_admin:
        return True
    if req.query.get('is_public', '').lower() in ('all', 'none'):
        return None
    return paging.parse_flag(req.query, 'is_public', default=True)


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

    @wsgi.action('addProjectAccess', 'add', target=None, body=PROJECT)
    def add(self, req: wsgi.Request, args: dict, type_id: str) -> None:
        """Allow a project to use the type."""
        self._check_project(req, args, 'addProjectAccess')
        self.services.db.write(
            self.tables.add_access, type_id, args['project'], by=req.ctx
        )

    @wsgi.action('removeProjectAccess', 'remove', target=None, body=PROJECT)
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
    get_type = staticmethod(share_types.get)
    response_key = 'share_type_access'
    kind = 'Share type'
    policies = {
        'list': 'share_type:list_project_access',
        'add': 'share_type:add_project_access',
        'remove': 'share_type:remove_project_access',
    }
