"""Criteria of lists of resources of projects, such as share groups."""

import typing

from manila_lite import exception
from manila_lite.api import paging, wsgi
from manila_lite.api.filters import Filter, filters

Values = dict[str, typing.Any]

_LIKE = filters(
    Filter('name~', 'name', since='2.36'),
    Filter('description~', 'description', since='2.36'),
    skip_empty=True,
)


class Criteria:
    """The keys that a list of resources of a project knows."""

    def __init__(self, *exact: Filter, all_projects: str | None = None):
        """`all_projects` is the rule for lists of all of them, not admin."""
        self._all_projects = all_projects
        self._exact = filters(*exact)
        self.query = (
            self._exact,
            _LIKE,
            Filter('all_tenants', parse=paging.parse_flag),
        )
        self._known = {
            *paging.KEYS,
            *(row.key for row in (*exact, *_LIKE.rows)),
            'all_tenants',
        }

    def parse(self, req: wsgi.Request) -> tuple[Values, Values]:
        """Return exact and partial values of columns.

        Raises InvalidInput for unknown keys (notes: Filters).
        """
        unknown = req.query.keys() - self._known
        if unknown:
            raise exception.InvalidInput(
                reason=f'unknown query keys: {", ".join(sorted(unknown))}'
            )
        values = self._exact.values(req)
        asks_for_all = paging.parse_flag(req.query, 'all_tenants')
        if not (asks_for_all and self._sees_all(req)):
            own = req.ctx.project_id
            if values.get('project_id', own) != own:
                values['id'] = ''  # those of others are not listed
            values['project_id'] = own
        return values, _LIKE.values(req)

    def _sees_all(self, req: wsgi.Request) -> bool:
        if self._all_projects is None:
            return bool(req.ctx.is_admin)
        return req.ctx.can(self._all_projects)
