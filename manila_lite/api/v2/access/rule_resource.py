"""Access rules of shares as a resource."""

import typing

from manila_lite import exception
from manila_lite.api import schema as s
from manila_lite.api import wsgi
from manila_lite.api.v2 import literals
from manila_lite.api.v2.access import share_rules as share_access
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.targets import AccessRuleTargetController
from manila_lite.api.v2.targets import get_share
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.shares import shares
from manila_lite.share.operations.access import targets as access_targets

_FILTERS_SINCE = 82
"""The minor version since which lists can be filtered by rule."""

UPDATE = s.schema(
    ['access_level'],
    wrapper='update_access',
    missing=400,
    access_level=share_access.LEVEL,
)


class ShareAccessRulesController(AccessRuleTargetController):
    @wsgi.method(
        'share_access_rule:index',
        refused={exception.ShareNotFound: exception.InvalidInput},
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the rules of the share that the query must name."""
        share = self._share(req)
        req.ctx.authorize('share:access_get_all', share)
        filters = _parse_filters(req)
        found = self.services.db.read(
            access_views.list_for_share, share.id, filters
        )
        return share_access.show_all(
            req,
            found,
            by_target='target' in filters.exact
            or filters.access_key is not None,
        )

    def _share(self, req):
        share_id = req.query.get('share_id')
        if not share_id:
            raise exception.InvalidInput(
                reason='share_id is required in the query'
            )
        return get_share(self.services.db, req.ctx, share_id)

    @wsgi.method('share_access_rule:get', target=True)
    def show(self, req: wsgi.Request, rule: typing.Any) -> dict:
        req.ctx.authorize('share:access_get', rule)
        return self._response(req, rule)

    @wsgi.method('share_access_rule:update', target=True, body=UPDATE)
    def update(self, req: wsgi.Request, rule: typing.Any, args: dict) -> dict:
        """Request another level; does nothing if the rule has that level."""
        share = self.services.db.read(shares.get_target, rule.share_id)
        self.services.access.change_level(
            req.ctx, share, rule.id, args['access_level']
        )
        return self._response(req, rule)

    def _response(self, req, rule):
        return share_access.show(
            req, self.services.db.read(access_views.get, rule.id)
        )


class ShareAccessMetadataController(
    MetadataController, AccessRuleTargetController
):
    table = access_views.METADATA
    policies = {
        'update': 'share_access_metadata:update',
        'delete': 'share_access_metadata:delete',
    }


def _parse_filters(req) -> access_views.AccessRuleFilter:
    query = req.query
    filters = access_views.AccessRuleFilter(
        metadata=literals.parse(query, 'metadata')
    )
    if req.minor < _FILTERS_SINCE:
        return filters
    _check_value(query, 'access_type', access_targets.ACCESS_TYPES)
    _check_value(query, 'access_level', ('rw', 'ro'))
    filters.exact = {
        name: query[name]
        for name in ('access_type', 'access_level')
        if name in query
    }
    if 'access_to' in query:
        if 'access_type' not in query:
            raise exception.InvalidInput(
                reason='access_to requires access_type'
            )
        filters.exact['target'] = access_targets.normalise(
            query['access_type'], query['access_to']
        )
    filters.access_key = query.get('access_key')
    return filters


def _check_value(query, name, values):
    if name in query and query[name] not in values:
        raise exception.InvalidInput(
            reason=f'{name} must be one of {", ".join(values)}'
        )
