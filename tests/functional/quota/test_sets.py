"""Limits that administrators set, and the limits effective then."""

import pytest

from manila_lite import exception
from manila_lite.quota import charges, limits, sets
from manila_lite.quota.charges import Owner
from manila_lite.quota.sets import scope_of
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import ALICE, DEFAULTS, GOLD

PROJECT = scope_of('blue')
USER = scope_of('blue', user_id='alice')
TYPE = scope_of('blue', share_type_id=GOLD)
SUBSCOPES = pytest.mark.parametrize('subscope', [USER, TYPE], ids=['user', 'type'])

pytestmark = pytest.mark.usefixtures('types')


def change(db, scope, values, **kwargs):
    return db.write(sets.change, DEFAULTS, scope, values, **kwargs)


def show(db, scope, resource='shares'):
    return db.read(sets.show, DEFAULTS, scope)[resource]


def charge(db, deltas, owner=ALICE):
    db.write(charges.charge, owner, deltas, limits=DEFAULTS)


def use(db, owner=ALICE):
    charge(db, dict.fromkeys(('shares', 'gigabytes'), 1), owner)


def effective_limit(db, scope, resource='shares'):
    subscope = {} if not scope.id else {f'{scope.kind}_id': scope.id}
    return quota_rows.effective_limit(db, resource, scope.project_id, **subscope)


def test_options_apply_without_set_limits(db):
    assert db.read(sets.show, DEFAULTS, PROJECT) == DEFAULTS
    assert db.read(sets.show, DEFAULTS, USER) == DEFAULTS
    assert list(db.read(sets.show, DEFAULTS, TYPE)) == list(limits.NAMES_PER_TYPE)


def test_every_layer_overrides_the_one_above(db):
    db.write(sets.change_class, DEFAULTS, 'default', {'shares': 40})
    assert show(db, PROJECT) == show(db, USER) == show(db, TYPE) == 40
    change(db, PROJECT, {'shares': 30})
    assert show(db, PROJECT) == show(db, USER) == show(db, TYPE) == 30
    change(db, USER, {'shares': 20})
    change(db, TYPE, {'shares': 10})
    assert (show(db, PROJECT), show(db, USER), show(db, TYPE)) == (30, 20, 10)
    assert show(db, scope_of('blue', user_id='bob')) == 30
    assert show(db, scope_of('red')) == 40


def test_change_keeps_other_limits_and_returns_all(db):
    change(db, PROJECT, {'shares': 7, 'backups': 1})
    assert change(db, PROJECT, {'shares': '8'}) == {
        **DEFAULTS,
        'shares': 8,
        'backups': 1,
    }
    assert db.read(sets.show, DEFAULTS, PROJECT) == {
        **DEFAULTS,
        'shares': 8,
        'backups': 1,
    }


def test_usage_is_shown_with_the_limits_by_scope(db):
    use(db)
    use(db, Owner('blue', 'bob', quota_rows.SILVER))
    db.write(charges.charge, ALICE, {'gigabytes': 3}, limits=DEFAULTS, reserve=True)
    change(db, USER, {'gigabytes': 50})
    shown = {
        scope: db.read(sets.show_usage, DEFAULTS, scope)
        for scope in (PROJECT, USER, TYPE)
    }
    assert shown[PROJECT]['gigabytes'] == (100, 2, 3)
    assert shown[USER]['gigabytes'] == (50, 1, 3)
    assert shown[TYPE]['gigabytes'] == (100, 1, 3)
    assert shown[PROJECT]['snapshots'] == (5, 0, 0)
    assert list(shown[PROJECT]) == list(limits.NAMES)


def test_show_takes_few_statements(db):
    use(db)
    seen = []
    db.on_step = seen.append
    db.read(sets.show, DEFAULTS, USER)
    assert seen == ['statement']
    db.read(sets.show_usage, DEFAULTS, USER)
    assert seen == ['statement'] * 3


def test_changed_limit_is_effective_at_once(db):
    use(db)
    change(db, PROJECT, {'shares': 1})
    with pytest.raises(exception.ShareLimitExceeded):
        use(db)
    change(db, PROJECT, {'shares': 2})
    use(db)
    assert effective_limit(db, PROJECT) == 2


@SUBSCOPES
def test_changed_limit_of_a_subscope_is_effective_at_once(db, subscope):
    use(db)
    change(db, subscope, {'shares': 1})
    assert effective_limit(db, subscope) == 1
    assert effective_limit(db, PROJECT) == DEFAULTS['shares']
    with pytest.raises(exception.ShareLimitExceeded):
        use(db)


@SUBSCOPES
def test_subscope_exceeds_the_project_only_if_forced(db, subscope):
    db.write(sets.change_class, DEFAULTS, 'default', {'shares': 9})
    with pytest.raises(exception.InvalidInput):
        change(db, subscope, {'shares': 10})
    change(db, subscope, {'shares': 10}, force=True)
    with pytest.raises(exception.InvalidInput):
        change(db, subscope, {'shares': -1})
    change(db, subscope, {'shares': 9})
    change(db, PROJECT, {'shares': -1})
    change(db, subscope, {'shares': -1})


def test_limit_below_usage_needs_force_and_a_refusal_changes_nothing(db):
    use(db)
    use(db)
    with pytest.raises(exception.InvalidInput):
        change(db, PROJECT, {'snapshots': 1, 'shares': 1})
    assert show(db, PROJECT, 'snapshots') == DEFAULTS['snapshots']
    change(db, PROJECT, {'shares': 1}, force=True)
    assert effective_limit(db, PROJECT) == 1


def test_networks_and_groups_cannot_be_limited_per_type(db):
    with pytest.raises(exception.InvalidInput, match='share_groups'):
        change(db, TYPE, {'share_groups': 1})


def test_reset_of_a_project_resets_users_and_not_types(db):
    use(db)
    change(db, PROJECT, {'shares': 4})
    change(db, USER, {'shares': 3})
    change(db, TYPE, {'shares': 2})
    db.write(sets.reset, DEFAULTS, PROJECT)
    assert show(db, PROJECT) == show(db, USER) == DEFAULTS['shares']
    assert show(db, TYPE) == 2
    assert effective_limit(db, PROJECT) == DEFAULTS['shares']
    assert effective_limit(db, USER) == -1
    assert effective_limit(db, TYPE) == 2
    assert quota_rows.usage(db, 'shares') == (1, 0)


@SUBSCOPES
def test_reset_of_a_subscope_resets_nothing_else(db, subscope):
    use(db)
    change(db, PROJECT, {'shares': 4})
    for scope in (USER, TYPE):
        change(db, scope, {'shares': 3})
    db.write(sets.reset, DEFAULTS, subscope)
    other = TYPE if subscope == USER else USER
    assert show(db, PROJECT) == show(db, subscope) == 4
    assert show(db, other) == 3
    assert (effective_limit(db, subscope), effective_limit(db, other)) == (-1, 3)


def test_default_class_applies_to_projects_without_own_limits(db):
    red = Owner('red', 'carol', GOLD)
    use(db)
    use(db, red)
    change(db, PROJECT, {'shares': 4})
    answer = db.write(sets.change_class, DEFAULTS, 'default', {'shares': 2})
    assert answer == {**DEFAULTS, 'shares': 2}
    assert effective_limit(db, PROJECT) == 4
    assert effective_limit(db, scope_of('red')) == 2
    assert effective_limit(db, scope_of('red'), 'gigabytes') == 100
    assert quota_rows.effective_limit(db, 'shares', 'red', user_id='carol') == -1
    db.write(sets.reset, DEFAULTS, PROJECT)
    assert effective_limit(db, PROJECT) == 2


def test_other_classes_are_stored_and_not_effective(db):
    use(db)
    db.write(sets.change_class, DEFAULTS, 'gold', {'shares': 1})
    assert db.read(sets.show_class, DEFAULTS, 'gold')['shares'] == 1
    assert db.read(sets.show_class, DEFAULTS, 'default') == DEFAULTS
    assert effective_limit(db, PROJECT) == show(db, PROJECT) == DEFAULTS['shares']


def test_class_limits_are_validated(db):
    with pytest.raises(exception.InvalidInput):
        db.write(sets.change_class, DEFAULTS, 'default', {'shares': -2})


def test_changed_options_are_effective_after_a_refresh(db):
    use(db)
    use(db, Owner('red', 'carol'))
    change(db, PROJECT, {'shares': 4})
    db.write(sets.change_class, DEFAULTS, 'default', {'gigabytes': 70})
    options = {**DEFAULTS, 'shares': 50, 'gigabytes': 500}
    assert db.write(sets.refresh_defaults, options) == 1
    assert effective_limit(db, PROJECT) == 4
    assert effective_limit(db, scope_of('red')) == 50
    assert effective_limit(db, scope_of('red'), 'gigabytes') == 70
    assert quota_rows.effective_limit(db, 'shares', 'red', user_id='carol') == -1
    assert db.write(sets.refresh_defaults, options) == 0
