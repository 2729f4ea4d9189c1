"""QoS types: list, show, create, update and delete; their specs."""

import typing

from manila_lite.api import answers, paging, schema, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2.types.extra_specs import Specs, TypeSpecsController, policies_of
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import qos_types
from manila_lite.db.queries.types.qos_types import QosTypeFilter, QosTypeRecord
from manila_lite.db.session import Session

_SORT_KEYS = {name: name for name in qos_types.SORT_KEYS}
_EXACT = filters(*exact('name', 'description'))
_LIKE = filters(Filter('name~', 'name'), Filter('description~', 'description'))
_DESCRIPTION = schema.string(255, nullable=True)
# The published examples have numbers.
_SPECS = Specs(bool, int, float)

CREATE = schema.schema(
    ['name'],
    wrapper='qos_type',
    name=schema.trimmed(255, 1),
    description=_DESCRIPTION,
    specs=_SPECS,
)
UPDATE = schema.schema(wrapper='qos_type', description=_DESCRIPTION)

ITEM = fields(
    Field('id'),
    Field('name'),
    Field('description'),
    Field('specs', shape=dict[str, str]),
    Field('created_at'),
    Field('updated_at'),
)


class QosTypesController(wsgi.Controller):
    @wsgi.method(
        'qos_type:index',
        answer=answers.page('qos_types', ITEM),
        query=(*paging.query_keys(_SORT_KEYS), _EXACT, _LIKE),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List a page of the types; all projects see all of them."""
        page = paging.parse(req.query, cap=self.max_limit, sort_keys=_SORT_KEYS)
        records = self.services.db.read(
            qos_types.list_page,
            QosTypeFilter(_EXACT.values(req), _LIKE.values(req)),
            page,
        )
        items = ITEM.many(req.minor)(records)
        return paging.answer(req, page, 'qos-types', 'qos_types', items, records)

    @wsgi.method('qos_type:show', answer={'qos_type': ITEM})
    def show(self, req: wsgi.Request, type_id: str) -> dict:
        """Show one type."""
        return _response(req, self.services.db.read(qos_types.get, type_id))

    @wsgi.method('qos_type:create', body=CREATE, answer={'qos_type': ITEM})
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Create a type with its specs."""
        return _response(
            req,
            self.services.db.write(
                _create,
                by=req.ctx,
                name=args['name'],
                description=args.get('description') or None,
                specs=args.get('specs', {}),
            ),
        )

    @wsgi.method('qos_type:update', body=UPDATE, answer={'qos_type': ITEM})
    def update(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Update the description; null or an empty one removes it."""
        values = {key: text or None for key, text in args.items()}
        return _response(
            req, self.services.db.write(_update, type_id, values, by=req.ctx)
        )

    @wsgi.method('qos_type:delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str) -> None:
        """Delete a type that is not in use."""
        self.services.db.write(qos_types.delete, type_id, by=req.ctx)


def _response(req: wsgi.Request, record: QosTypeRecord) -> dict:
    return {'qos_type': ITEM.function(req.minor)(record)}


def _create(session: Session, **values: typing.Any) -> QosTypeRecord:
    return qos_types.get(session, qos_types.create(session, **values))


def _update(session: Session, id: str, values: dict) -> QosTypeRecord:
    if values:
        qos_types.TABLES.update(session, id, values)
    return qos_types.get(session, id)


def _get(session: Session, _: RequestContext, id: str) -> QosTypeRecord:
    """Return a type; all projects see all types."""
    return qos_types.get(session, id)


class QosTypeSpecsController(TypeSpecsController):
    tables = qos_types.TABLES
    get_type = staticmethod(_get)
    specs_key = 'specs'
    accepted = _SPECS
    policies = policies_of('qos_type_specs')
