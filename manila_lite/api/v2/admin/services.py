"""Services: list, enable, disable, ensure shares."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import paging, schema, wsgi
from manila_lite.api.fields import Field, fields, fn2
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.services import ApiServices
from manila_lite.db.queries.services import services as queries
from manila_lite.db.rows import ServiceRow

_VERBS = {'enable': False, 'disable': True}

_name = schema.string(255, 1)
UPDATE = schema.schema(
    ['host', 'binary'],
    host=_name,
    binary=_name,
    disabled_reason=schema.since('2.83', _name, below='refuse'),
)

_HOST = schema.obj(['host'], host=_name)
_IN_WRAPPER = schema.obj(['ensure_shares'], ensure_shares=_HOST)


class _Ensure(schema.Type):
    """The name of a host.

    It is published inside a wrapper, but the official clients send it without
    one.
    """

    def at(self, minor: int) -> schema.Check:
        bare, wrapped = _HOST.at(minor), _IN_WRAPPER.at(minor)

        def check(value: typing.Any) -> dict:
            if 'ensure_shares' in value:
                return wrapped(value)['ensure_shares']
            return bare(value)

        return check

    def json_schema(self, minor: int) -> dict:
        choices = (_HOST, _IN_WRAPPER)
        return {'anyOf': [choice.json_schema(minor) for choice in choices]}


ENSURE = schema.body_of(_Ensure())


class UpdatedService(typing.NamedTuple):
    """The response about a service that was enabled or disabled."""

    host: str
    binary: str
    disabled: bool
    disabled_reason: str | None
    ensuring: None = None


def _status(row: ServiceRow | UpdatedService) -> str:
    return 'disabled' if row.disabled else 'enabled'


def _state(row: ServiceRow, more: Mapping) -> str:
    return 'up' if queries.is_up(row, more['down_time']) else 'down'


UPDATED = fields(
    Field('host'),
    Field('binary'),
    Field('status', _status),
    Field('disabled_reason', since='2.83'),
    Field('ensuring', since='2.86', shape=bool | None),
)
LIST_ITEM = fields(
    Field('id', shape=int),
    *UPDATED.rows,
    Field('zone'),
    Field('state', fn2(_state)),
    Field('updated_at'),
)


def _parse_boolean(query: Mapping[str, str], key: str) -> bool | str:
    """Parse a boolean; other words are returned and match nothing."""
    text = query[key]
    if text in schema.TRUE_WORDS:
        return True
    return False if text in schema.FALSE_WORDS else text


_FILTERS = filters(
    *exact('host', 'binary', 'zone', 'state', 'status'),
    Filter('ensuring', since='2.93', parse=_parse_boolean),
)


class ServicesController(wsgi.Controller):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._more = {'down_time': services.conf.service_down_time}

    @wsgi.method(
        'service:index',
        answer={'services': [LIST_ITEM]},
        query=(_FILTERS, paging.MARKER),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the services whose fields match the query."""
        wanted = _FILTERS.values(req)
        rows = self.services.db.read(queries.list_all)
        items = [
            item
            for item in LIST_ITEM.many(req.minor)(rows, self._more)
            if all(item[name] == value for name, value in wanted.items())
        ]
        return {'services': paging.behind_marker(req, items)}

    @wsgi.method('service:update', body=UPDATE, answer=UPDATED)
    def update(self, req: wsgi.Request, args: dict, verb: str) -> dict:
        """Enable or disable a service for new work."""
        if verb not in _VERBS:
            raise exception.NotFound()
        disabled = _VERBS[verb]
        updated = UpdatedService(
            args['host'],
            args['binary'],
            disabled,
            args.get('disabled_reason') if disabled else None,
        )
        self.services.db.write(
            queries.set_disabled,
            updated.host,
            updated.binary,
            disabled,
            updated.disabled_reason,
            by=req.ctx,
        )
        return UPDATED.function(req.minor)(updated)

    @wsgi.method('service:ensure_shares', body=ENSURE, status=202)
    def ensure_shares(self, req: wsgi.Request, args: dict) -> None:
        """Request that a service ensures its shares."""
        self.services.services.ensure_shares(req.ctx, args['host'])
