"""Access rules of shares, as a resource of their own."""

import typing

from manila_lite import exception
from manila_lite.api import schema as s
from manila_lite.api import wsgi
from manila_lite.api.v2 import literals
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.access import share_rules as share_access
from manila_lite.api.v2.shares.shares import ShareTargetController
from manila_lite.api.v2.shares.shares import is_share_visible
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.shares import shares
from manila_lite.share.operations.access import targets as access_targets

_FILTERS_SINCE = 82
"""The minor version from which a list can be narrowed by the rule."""

UPDATE = s.schema(
    ['access_level'],
    wrapper='update_access',
    missing=400,
    access_level=share_access.LEVEL,
)


class AccessRuleTargetController(wsgi.Controller):
    """The rule that a request is about, which projects keep to themselves."""

    def target(self, req: wsgi.Request, access_id: str) -> typing.Any:
        row = self.services.db.read(access_views.get_target, access_id)
        is_own = row.project_id == req.ctx.project_id or req.ctx.is_admin
        if not is_own or not is_share_visible(req.ctx, row):
            raise exception.ShareAccessNotFound(access_id=access_id)
        return row


class ShareAccessRulesController(AccessRuleTargetController):
    @wsgi.method('share_access_rule:index')
    def index(self, req: wsgi.Request) -> dict:
        """The rules of the share that the query has to name."""
        share = self._share(req)
        req.ctx.authorize('share:access_get_all', share)
        wanted = _wanted(req)
        found = self.services.db.read(
            access_views.list_for_share, share.id, wanted
        )
        return share_access.show_all(
            req,
            found,
            by_target='target' in wanted.exact
            or wanted.access_key is not None,
        )

    def _share(self, req):
        share_id = req.query.get('share_id')
        if not share_id:
            raise exception.InvalidInput(
                reason='share_id is required in the query'
            )
        try:
            return ShareTargetController(self.services).target(req, share_id)
        except exception.ShareNotFound as error:
            raise exception.InvalidInput(reason=error.msg) from error

    @wsgi.method('share_access_rule:get', target=True)
    def show(self, req: wsgi.Request, rule: typing.Any) -> dict:
        req.ctx.authorize('share:access_get', rule)
        return self._shown(req, rule)

    @wsgi.method('share_access_rule:update', target=True, body=UPDATE)
    def update(self, req: wsgi.Request, rule: typing.Any, args: dict) -> dict:
        """Ask for another level; the level the rule has changes nothing."""
        share = self.services.db.read(shares.get_target, rule.share_id)
        self.services.access.change_level(
            req.ctx, share, rule.id, args['access_level']
        )
        return self._shown(req, rule)

    def _shown(self, req, rule):
        return share_access.show(
            req, self.services.db.read(access_views.get, rule.id)
        )


class ShareAccessMetadataController(AccessRuleTargetController):
    @wsgi.method(
        'share_access_metadata:update', target=True, body=metadata.VALUES
    )
    def update(self, req: wsgi.Request, rule: typing.Any, args: dict) -> dict:
        """Set these keys and keep the others."""
        return metadata.show(
            self.services.db.write(
                access_views.METADATA.merge, rule.id, args['metadata']
            )
        )

    @wsgi.method('share_access_metadata:delete', target=True)
    def delete(self, req: wsgi.Request, rule: typing.Any, key: str) -> None:
        if not self.services.db.write(
            access_views.METADATA.remove, rule.id, [key]
        ):
            raise exception.MetadataItemNotFound(key=key)


def _wanted(req) -> access_views.AccessRuleFilter:
    query = req.query
    wanted = access_views.AccessRuleFilter(
        metadata=literals.parse(query, 'metadata')
    )
    if req.minor < _FILTERS_SINCE:
        return wanted
    _one_of(query, 'access_type', access_targets.ACCESS_TYPES)
    _one_of(query, 'access_level', ('rw', 'ro'))
    wanted.exact = {
        name: query[name]
        for name in ('access_type', 'access_level')
        if name in query
    }
    if 'access_to' in query:
        if 'access_type' not in query:
            raise exception.InvalidInput(reason='access_to needs access_type')
        wanted.exact['target'] = access_targets.normalise(
            query['access_type'], query['access_to']
        )
    wanted.access_key = query.get('access_key')
    return wanted


def _one_of(query, name, values):
    if name in query and query[name] not in values:
        raise exception.InvalidInput(
            reason=f'{name} must be one of {", ".join(values)}'
        )
