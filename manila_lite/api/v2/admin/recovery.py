"""Recovery, for administrators.

These paths are not part of the published API and do not collide with it.
"""

from manila_lite import exception
from manila_lite.api import answers, paging, schema, wsgi
from manila_lite.api.fields import Field, attr, fields
from manila_lite.api.filters import Filter
from manila_lite.api.services import ApiServices
from manila_lite.share.operations.recovery import RESOURCES, InFlight

_name = schema.string(255, 1)
RUN = schema.schema(
    wrapper='run',
    missing=400,
    extra='refuse',
    host=_name,
    resource_type=schema.one_of(*RESOURCES),
    resource_id=schema.string(36, 1),
)

IN_FLIGHT = fields(
    *(Field(name, shape=kind) for name, kind in InFlight.__annotations__.items())
)
DECISION = fields(
    Field('id', shape=int),
    Field('resource_type', attr('resource')),
    Field('resource_id'),
    Field('host'),
    Field('status_before'),
    Field('evidence'),
    Field('action'),
    Field('status_after'),
    Field('reason'),
    Field('duration'),
    Field('made_by'),
    Field('asked_by'),
    Field('request_id'),
    Field('made_at'),
)


_QUERY = (
    *paging.query_keys(),
    Filter('resource_type', words=RESOURCES),
    Filter('host'),
)


class RecoveryController(wsgi.Controller):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._recovery = services.recovery

    @wsgi.method('recovery:in_flight', answer={'in_flight': [IN_FLIGHT]}, query=_QUERY)
    def in_flight(self, req: wsgi.Request) -> dict:
        """List resources in flight, in the order of a pass."""
        return {'in_flight': self._list_in_flight(req, candidates=False)}

    @wsgi.method('recovery:preview', answer={'preview': [IN_FLIGHT]}, query=_QUERY)
    def preview(self, req: wsgi.Request) -> dict:
        """List those that a pass would handle; changes nothing."""
        return {'preview': self._list_in_flight(req, candidates=True)}

    def _list_in_flight(self, req: wsgi.Request, *, candidates: bool) -> list[dict]:
        # Resources of different kinds may have the same id, so that no marker
        # tells where a page begins.
        page = paging.parse(req.query, cap=self.max_limit)
        page = page._replace(marker=None)
        found = self._recovery.in_flight(
            limit=page.offset + (page.limit or self.max_limit),
            candidates=candidates,
            resource_type=_resource_type(req),
            host=req.query.get('host'),
        )
        return IN_FLIGHT.many(req.minor)(page.slice_rows(found), {})

    @wsgi.method(
        'recovery:log',
        answer={'log': [DECISION]},
        query=(*_QUERY, Filter('resource_id')),
    )
    def log(self, req: wsgi.Request) -> dict:
        """List the decisions, newest first."""
        page = paging.parse(req.query, cap=self.max_limit)
        found = self._recovery.log(
            limit=page.limit,
            offset=page.offset,
            resource=_resource_type(req),
            resource_id=req.query.get('resource_id'),
            host=req.query.get('host'),
        )
        return {'log': DECISION.many(req.minor)(page.check(found), {})}

    @wsgi.method(
        'recovery:run',
        status=202,
        body=RUN,
        answer={answers.MayLack('hosts'): list[str]},
    )
    def run(self, req: wsgi.Request, args: dict) -> dict:
        """Request a pass of all services, of one, or for one resource."""
        if ('resource_id' in args) != ('resource_type' in args) or (
            'host' in args and 'resource_id' in args
        ):
            raise exception.InvalidInput(
                reason='name a host, or a resource_type and a resource_id, or nothing'
            )
        if 'resource_id' not in args:
            return {'hosts': self._recovery.run_pass(req.ctx, args.get('host'))}
        self._recovery.rescue(req.ctx, args['resource_type'], args['resource_id'])
        return {}


def _resource_type(req: wsgi.Request) -> str | None:
    named = req.query.get('resource_type')
    if named not in (None, *RESOURCES):
        raise exception.InvalidInput(
            reason=f'resource_type must be one of: {", ".join(RESOURCES)}'
        )
    return named
