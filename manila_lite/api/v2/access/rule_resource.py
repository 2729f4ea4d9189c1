"""Access rules of shares as a resource."""

from collections.abc import Mapping

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.filters import Filter, Parser, filters
from manila_lite.api.v2 import literals
from manila_lite.api.v2.access import share_rules as share_access
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.targets import AccessRuleTargetController, get_share
from manila_lite.db import rows
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.shares import shares
from manila_lite.share.operations.access import targets as access_targets


def _one_of(*words: str) -> Parser:
    def parse(query: Mapping[str, str], key: str) -> str:
        if query[key] not in words:
            raise exception.InvalidInput(
                reason=f'{key} must be one of {", ".join(words)}'
            )
        return query[key]

    return parse


def _target(query: Mapping[str, str], key: str) -> str:
    if 'access_type' not in query:
        raise exception.InvalidInput(reason=f'{key} requires access_type')
    return access_targets.normalise(query['access_type'], query[key])


_EXACT = filters(
    Filter('access_type', since='2.82', parse=_one_of(*access_targets.ACCESS_TYPES)),
    Filter('access_level', since='2.82', parse=_one_of('rw', 'ro')),
    Filter('access_to', 'target', since='2.82', parse=_target),
)
_OTHERS = filters(
    Filter('metadata', parse=literals.parse), Filter('access_key', since='2.82')
)

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
        answer={'access_list': [share_access.IN_LIST]},
        query=(Filter('share_id', required=True), _EXACT, _OTHERS),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the rules of the share that the query must name."""
        share = self._share(req)
        req.ctx.authorize('share:access_get_all', share)
        wanted = access_views.AccessRuleFilter(
            exact=_EXACT.values(req), **_OTHERS.values(req)
        )
        found = self.services.db.read(access_views.list_for_share, share.id, wanted)
        return share_access.show_all(
            req,
            found,
            by_target='target' in wanted.exact or wanted.access_key is not None,
        )

    def _share(self, req: wsgi.Request) -> rows.ShareTarget:
        share_id = req.query.get('share_id')
        if not share_id:
            raise exception.InvalidInput(reason='share_id is required in the query')
        return get_share(self.services.db, req.ctx, share_id)

    @wsgi.method(
        'share_access_rule:get', target=True, answer={'access': share_access.DETAIL}
    )
    def show(self, req: wsgi.Request, rule: rows.AccessRuleTarget) -> dict:
        req.ctx.authorize('share:access_get', rule)
        return self._response(req, rule)

    @wsgi.method(
        'share_access_rule:update',
        target=True,
        body=UPDATE,
        answer={'access': share_access.DETAIL},
    )
    def update(
        self, req: wsgi.Request, rule: rows.AccessRuleTarget, args: dict
    ) -> dict:
        """Request another level; does nothing if the rule has that level."""
        share = self.services.db.read(shares.get_target, rule.share_id)
        self.services.access.change_level(req.ctx, share, rule.id, args['access_level'])
        return self._response(req, rule)

    def _response(self, req: wsgi.Request, rule: rows.AccessRuleTarget) -> dict:
        return share_access.show(req, self.services.db.read(access_views.get, rule.id))


class ShareAccessMetadataController(MetadataController, AccessRuleTargetController):
    table = access_views.METADATA
    policies = {
        'update': 'share_access_metadata:update',
        'delete': 'share_access_metadata:delete',
    }
