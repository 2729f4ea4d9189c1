"""The access rules of shares and snapshots: actions, lists and views."""

from collections.abc import Iterable, Mapping
import typing

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, FieldValue, child, fields, fn, fn2
from manila_lite.api.filters import Filter, Parser, filters
from manila_lite.api.v2 import literals, targets
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.access import snapshot_rules, views as access_views
from manila_lite.db.queries.shares import shares
from manila_lite.share.operations.access import targets as access_targets
from manila_lite.share.operations.access.rules import RuleLockOptions
from manila_lite.states.access_rule import DENIED, RulesStatus, RuleState

MASK = '******'
"""Replaces the attributes of a rule hidden from the caller."""

LEVEL = s.one_of('rw', 'ro')
_REASON = s.string(1023, nullable=True)
_TARGET = s.string(255, 1)

ALLOW = s.schema(
    ['access_type', 'access_to'],
    access_type=s.string(255, 1),
    access_to=_TARGET,
    access_level=s.one_of('rw', 'ro', None),
    metadata=s.since('2.45', s.mapping(s.string(1023, 1), nullable=True)),
    lock_visibility=s.since('2.82', s.boolean),
    lock_deletion=s.since('2.82', s.boolean),
    lock_reason=s.since('2.82', _REASON),
)

# `unrestrict` is documented since 2.82, and honoured by every version.
DENY = s.schema(['access_id'], access_id=s.trimmed(255, 1), unrestrict=s.boolean)


def _state_before_2_28(row: rows.AccessRuleRow, more: Mapping[str, typing.Any]) -> str:
    """Return the state in the form of versions before 2.28."""
    if row.state in (RuleState.ACTIVE, RuleState.ERROR):
        return row.state
    if row.state in DENIED:
        return _STATE_OF_STATUS[more['rules_status']]
    return 'new'


_STATE_OF_STATUS = {
    RulesStatus.ERROR: RuleState.ERROR,
    RulesStatus.OUT_OF_SYNC: 'new',
    RulesStatus.ACTIVE: RuleState.ACTIVE,
}


def _state_before_2_88(row: rows.AccessRuleRow) -> str:
    return _STATES_BEFORE_2_88.get(row.state, row.state)


# Older clients see a level change as the rule being applied again.
_STATES_BEFORE_2_88 = {
    RuleState.QUEUED_TO_UPDATE: RuleState.QUEUED_TO_APPLY,
    RuleState.UPDATING: RuleState.APPLYING,
}


def _masked(name: str) -> FieldValue:
    """The attribute, or the mask if the rule is hidden from the caller."""
    return FieldValue(f"$ if row.id in more['hidden'] else row.{name}", MASK)


_FIELDS = (
    Field('id'),
    Field('access_type'),
    Field('access_to', _masked('access_to')),
    Field('access_level'),
    Field('state', fn2(_state_before_2_28), until='2.27'),
    Field('state', fn(_state_before_2_88), since='2.28', until='2.87'),
    Field('state', since='2.88'),
    Field('access_key', _masked('access_key'), since='2.21'),
    Field('created_at', since='2.33'),
    Field('updated_at', since='2.33'),
    Field('metadata', child('metadata'), since='2.45', shape=dict[str, str]),
)
IN_LIST = fields(*_FIELDS)
DETAIL = fields(*_FIELDS, Field('share_id'))


def show(req: wsgi.Request, listing: access_views.AccessRuleListing) -> dict:
    """Return the response with one rule."""
    return {'access': DETAIL.function(req.minor)(listing.rules[0], _more(req, listing))}


def show_all(
    req: wsgi.Request, listing: access_views.AccessRuleListing, by_target: bool = False
) -> dict:
    """Return the response with the rules of a share.

    Rules hidden from the caller are left out if filtered `by_target`: that
    would reveal their clients.
    """
    more, rules = _more(req, listing), listing.rules
    if by_target:
        rules = [rule for rule in rules if rule.id not in more['hidden']]
    items = IN_LIST.many(req.minor)(rules, more)
    return {'access_list': paging.behind_marker(req, items)}


def _more(req: wsgi.Request, listing: access_views.AccessRuleListing) -> dict:
    return {
        'metadata': listing.metadata,
        'rules_status': listing.rules_status,
        'hidden': _hidden_rules(req, listing.locks),
    }


def _hidden_rules(
    req: wsgi.Request, locks: Mapping[str, Iterable[rows.VisibilityLockRow]]
) -> set[str]:
    """Return the ids of rules hidden from the caller by a lock."""
    return {
        access_id
        for access_id, rule_locks in locks.items()
        if not _may_see(req.ctx, rule_locks)
    }


def _may_see(ctx: RequestContext, locks: Iterable[rows.VisibilityLockRow]) -> bool:
    return all(
        ctx.can('resource_lock:bypass_locked_show_action', lock) for lock in locks
    )


class ShareAccessActionsController(wsgi.Controller):
    """Actions on shares that change or list their access rules."""

    target = targets.SHARE.loader

    @wsgi.action(
        'allow_access',
        'share:allow_access',
        renamed='2.7',
        body=ALLOW,
        status=200,
        answer={'access': DETAIL},
    )
    def allow_access(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> dict:
        """Accept a rule; responds before the back end has applied it."""
        locked = _lock_options(args)
        target = access_targets.normalise(
            args['access_type'],
            args['access_to'],
            ipv6=req.minor >= 38,
            cephx=req.minor >= 13,
        )
        metadata = args.get('metadata') or {}
        rule = self.services.access.allow(
            req.ctx,
            share,
            access_type=args['access_type'],
            access_to=args['access_to'],
            target=target,
            access_level=args.get('access_level') or 'rw',
            metadata=metadata,
            locked=locked,
            allow_in_error=req.minor >= 74,
            allow_rules_in_error=req.minor >= 28,
        )
        return show(
            req,
            access_views.AccessRuleListing(
                [rule], rule.access_rules_status, {rule.id: metadata}, {}
            ),
        )

    @wsgi.action('deny_access', 'share:deny_access', renamed='2.7', body=DENY)
    def deny_access(
        self, req: wsgi.Request, share: rows.ShareTarget, args: dict
    ) -> None:
        """Request the removal of a rule; responds before it is removed."""
        self.services.access.deny(
            req.ctx,
            share,
            args['access_id'],
            unrestrict=args.get('unrestrict', False),
            allow_in_error=req.minor >= 74,
        )

    @wsgi.action(
        'access_list',
        'share:access_get_all',
        renamed='2.7',
        until='2.44',
        status=200,
        answer={'access_list': [IN_LIST]},
    )
    def access_list(self, req: wsgi.Request, share: rows.ShareTarget) -> dict:
        return show_all(
            req, self.services.db.read(access_views.list_for_share, share.id)
        )


def _lock_options(args: dict) -> RuleLockOptions | None:
    visibility = args.get('lock_visibility', False)
    deletion = args.get('lock_deletion', False)
    reason = args.get('lock_reason')
    if visibility or deletion:
        return RuleLockOptions(visibility, deletion, reason)
    if reason:
        raise exception.InvalidInput(
            reason='lock_reason requires lock_visibility or lock_deletion'
        )
    return None


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
    ['access_level'], wrapper='update_access', missing=400, access_level=LEVEL
)


class ShareAccessRulesController(wsgi.Controller):
    target = targets.ACCESS_RULE.loader

    @wsgi.method(
        'share_access_rule:index',
        refused={exception.ShareNotFound: exception.InvalidInput},
        answer={'access_list': [IN_LIST]},
        query=(Filter('share_id', required=True), _EXACT, _OTHERS, paging.MARKER),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the rules of the share that the query must name."""
        share = self._share(req)
        req.ctx.authorize('share:access_get_all', share)
        wanted = access_views.AccessRuleFilter(
            exact=_EXACT.values(req), **_OTHERS.values(req)
        )
        found = self.services.db.read(access_views.list_for_share, share.id, wanted)
        return show_all(
            req,
            found,
            by_target='target' in wanted.exact or wanted.access_key is not None,
        )

    def _share(self, req: wsgi.Request) -> rows.ShareTarget:
        share_id = req.query.get('share_id')
        if not share_id:
            raise exception.InvalidInput(reason='share_id is required in the query')
        return targets.SHARE.get(self.services.db, req.ctx, share_id)

    @wsgi.method('share_access_rule:get', target=True, answer={'access': DETAIL})
    def show(self, req: wsgi.Request, rule: rows.AccessRuleTarget) -> dict:
        req.ctx.authorize('share:access_get', rule)
        return self._response(req, rule)

    @wsgi.method(
        'share_access_rule:update', target=True, body=UPDATE, answer={'access': DETAIL}
    )
    def update(
        self, req: wsgi.Request, rule: rows.AccessRuleTarget, args: dict
    ) -> dict:
        """Request another level; does nothing if the rule has that level."""
        share = self.services.db.read(shares.get_target, rule.share_id)
        self.services.access.change_level(req.ctx, share, rule.id, args['access_level'])
        return self._response(req, rule)

    def _response(self, req: wsgi.Request, rule: rows.AccessRuleTarget) -> dict:
        return show(req, self.services.db.read(access_views.get, rule.id))


class ShareAccessMetadataController(MetadataController):
    target = targets.ACCESS_RULE.loader

    table = access_views.METADATA
    policies = {
        'update': 'share_access_metadata:update',
        'delete': 'share_access_metadata:delete',
    }


IPV6_SINCE = 38
"""The minor version since which rules may name IPv6 clients."""

ALLOW_SNAPSHOT = s.schema(
    ['access_type', 'access_to'],
    access_type=s.string(255, 1),
    access_to=s.string(255, 1),
)
DENY_SNAPSHOT = s.schema(['access_id'], access_id=s.trimmed(255, 1))

SNAPSHOT_RULE = fields(
    Field('id'), Field('access_type'), Field('access_to'), Field('state')
)


class SnapshotAccessActionsController(wsgi.Controller):
    target = targets.SNAPSHOT.loader

    @wsgi.action(
        'allow_access',
        'share_snapshot:allow_access',
        since='2.32',
        body=ALLOW_SNAPSHOT,
        answer={'snapshot_access': SNAPSHOT_RULE},
    )
    def allow_access(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> dict:
        """Accept a rule; responds before the back end has applied it."""
        rule = self.services.snapshot_access.allow(
            req.ctx,
            snapshot,
            args['access_type'],
            args['access_to'],
            ipv6=req.minor >= IPV6_SINCE,
        )
        return {'snapshot_access': SNAPSHOT_RULE.function(req.minor)(rule)}

    @wsgi.action(
        'deny_access', 'share_snapshot:deny_access', since='2.32', body=DENY_SNAPSHOT
    )
    def deny_access(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> None:
        self.services.snapshot_access.deny(req.ctx, snapshot, args['access_id'])


class SnapshotAccessListController(wsgi.Controller):
    target = targets.SNAPSHOT.loader

    @wsgi.method(
        'share_snapshot:access_list',
        target=True,
        answer={'snapshot_access_list': [SNAPSHOT_RULE]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> dict:
        rules = self.services.db.read(snapshot_rules.list_rules, snapshot.id)
        items = SNAPSHOT_RULE.many(req.minor)(rules)
        return {'snapshot_access_list': paging.behind_marker(req, items)}
