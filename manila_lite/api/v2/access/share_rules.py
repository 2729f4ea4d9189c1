"""Actions on the access rules of shares, and the views of rules."""

from collections.abc import Iterable, Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.fields import Field, FieldValue, child, fields, fn, fn2
from manila_lite.api.v2.targets import ShareTargetController
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.access import views as access_views
from manila_lite.share.operations.access import targets as access_targets
from manila_lite.share.operations.access.share_rules import RuleLockOptions
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
    return {'access_list': IN_LIST.many(req.minor)(rules, more)}


def _more(req: wsgi.Request, listing: access_views.AccessRuleListing) -> dict:
    return {
        'metadata': listing.metadata,
        'rules_status': listing.rules_status,
        'hidden': _hidden_rules(req, listing.locks),
    }


def _hidden_rules(
    req: wsgi.Request, locks: Mapping[str, Iterable[rows.HidingLockRow]]
) -> set[str]:
    """Return the ids of rules hidden from the caller by a lock."""
    return {
        access_id
        for access_id, rule_locks in locks.items()
        if not _may_see(req.ctx, rule_locks)
    }


def _may_see(ctx: RequestContext, locks: Iterable[rows.HidingLockRow]) -> bool:
    return all(
        ctx.can('resource_lock:bypass_locked_show_action', lock) for lock in locks
    )


class ShareAccessActionsController(ShareTargetController):
    """Actions on shares that change or list their access rules."""

    @wsgi.action(
        'os-allow_access',
        until='2.6',
        policy='share:allow_access',
        body=ALLOW,
        status=200,
        answer={'access': DETAIL},
    )
    @wsgi.action(
        'allow_access',
        since='2.7',
        policy='share:allow_access',
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

    @wsgi.action('os-deny_access', until='2.6', policy='share:deny_access', body=DENY)
    @wsgi.action('deny_access', since='2.7', policy='share:deny_access', body=DENY)
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
        'os-access_list',
        until='2.6',
        policy='share:access_get_all',
        status=200,
        answer={'access_list': [IN_LIST]},
    )
    @wsgi.action(
        'access_list',
        since='2.7',
        until='2.44',
        policy='share:access_get_all',
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
