"""The pools that the scheduler can choose."""

from collections.abc import Mapping, Sequence
import re
import typing

import orjson

from manila_lite import exception
from manila_lite.api import paging, versions, wsgi
from manila_lite.api.fields import Field, View, fields
from manila_lite.api.filters import Filter, exact
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import literals
from manila_lite.context import RequestContext
from manila_lite.db.queries.services import pools, services as service_queries
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.rows import PoolRow
from manila_lite.db.session import Session
from manila_lite.host import Host

_FILTERS = ('host', 'backend', 'pool')
_FILTER_BY_TYPE = versions.window(since='2.23')
_LONGEST = 255  # characters of a regular expression

SUMMARY = fields(
    *(Field(name, shape=str) for name in ('name', 'host', 'backend', 'pool'))
)
DETAIL = fields(*SUMMARY.rows, Field('capabilities', shape=dict))


_QUERY = (
    *exact(*_FILTERS),
    Filter('capabilities', parse=literals.parse),
    Filter('share_type', since='2.23'),
    paging.MARKER,
)


class PoolView(typing.NamedTuple):
    """A pool as shown by the API; its name is host@backend#pool."""

    name: str
    host: str
    backend: str
    pool: str
    capabilities: dict[str, typing.Any]


class PoolQuery(typing.NamedTuple):
    """The filters of a pool; regular expressions match from the start."""

    parts: Mapping[str, re.Pattern]
    capabilities: Mapping[str, re.Pattern]
    share_type: str | None

    def matches(self, pool: PoolView) -> bool:
        return all(
            pattern.match(getattr(pool, name)) for name, pattern in self.parts.items()
        ) and all(
            _has(pool.capabilities.get(name), pattern)
            for name, pattern in self.capabilities.items()
        )


class SchedulerStatsController(wsgi.Controller):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._down_time = services.conf.service_down_time

    @wsgi.method(
        'scheduler_stats:pools:index', answer={'pools': [SUMMARY]}, query=_QUERY
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the names of pools."""
        return self._answer(req, SUMMARY)

    @wsgi.method(
        'scheduler_stats:pools:detail', answer={'pools': [DETAIL]}, query=_QUERY
    )
    def detail(self, req: wsgi.Request) -> dict:
        """List pools with the capabilities that their back ends report."""
        return self._answer(req, DETAIL)

    def _answer(self, req: wsgi.Request, view: View) -> dict:
        query = _parse_query(req)
        rows, specs = self.services.db.read(_pools_and_specs, req.ctx, query.share_type)
        found = [
            pool
            for pool in map(_pool, filter(self._serves, rows))
            if query.matches(pool)
            and self.services.pool_matches(pool.capabilities, specs)
        ]
        items = view.many(req.minor)(found)
        return {'pools': paging.behind_marker(req, items, 'name')}

    def _serves(self, row: PoolRow) -> bool:
        return not row.disabled and service_queries.is_up(row, self._down_time)


def _pool(row: PoolRow) -> PoolView:
    host = Host.parse(row.host)
    return PoolView(
        row.host, host.machine, host.backend, host.pool, orjson.loads(row.capabilities)
    )


def _pools_and_specs(
    session: Session, ctx: RequestContext, share_type: str | None
) -> tuple[Sequence[PoolRow], Mapping[str, str]]:
    """Return all pools and the extra specs that they must match."""
    if not share_type:
        return pools.list_all(session), {}
    found = share_types.find_usable(session, share_type, ctx.project_id, ctx.is_admin)
    if found is None:
        raise exception.InvalidInput(
            reason='share_type must be the id or name of a share type'
        )
    return pools.list_all(session), found.extra_specs


def _parse_query(req: wsgi.Request) -> PoolQuery:
    return PoolQuery(
        {
            name: _expression(name, req.query[name])
            for name in _FILTERS
            if name in req.query
        },
        {
            name: _expression('capabilities', text)
            for name, text in literals.parse(req.query, 'capabilities').items()
        },
        req.query.get('share_type') if req.minor in _FILTER_BY_TYPE else None,
    )


def _expression(name: str, text: str) -> re.Pattern:
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return re.compile(text)
    except (re.error, ValueError, OverflowError, RecursionError):
        raise exception.InvalidInput(
            reason=f'{name} must be a regular expression of at most '
            f'{_LONGEST} characters'
        ) from None


def _has(capability: object, pattern: re.Pattern) -> bool:
    """Return whether a capability, or one of its values, matches."""
    several = capability if type(capability) is list else [capability]
    return any(pattern.match(str(value)) for value in several)
