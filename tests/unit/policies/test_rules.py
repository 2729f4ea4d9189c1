"""The rules equal the published table."""

import pytest

from manila_lite import policies
from manila_lite.policies import base
from manila_lite.policies import recovery
from tests.support import reference

# Capabilities of the share resource that are not served yet.
LATER = {
    'share:migration_start',
    'share:migration_complete',
    'share:migration_cancel',
    'share:migration_get_progress',
    # Of snapshots the deletion is never deferred.
    'share_snapshot:list_snapshots_in_deferred_deletion_states',
}
RESOURCES = {
    'availability_zone',
    'scheduler_stats',
    'service',
    'quota_set',
    'quota_class_set',
    'share',
    'share_instance',
    'share_snapshot',
    'share_snapshot_instance',
    'share_snapshot_export_location',
    'share_snapshot_instance_export_location',
    'share_type',
    'share_types_extra_spec',
    'share_export_location',
    'share_instance_export_location',
    'message',
    'resource_lock',
    'share_access_rule',
    'share_access_metadata',
    'share_network',
    'share_network_subnet',
    'security_service',
    'share_server',
    'share_replica',
    'share_replica_export_location',
}
OLDER = {
    'admin': 'rule:admin_api',
    'admin or any user of the project': 'rule:default',
    'admin or owner user': 'rule:admin_or_owner_user',
    '': None,
}


def published():
    """The rows of the base rules and of the resources served."""
    return {
        row['rule']: row
        for row in reference.table('policies.csv')
        if row['rule'] not in LATER
        and (
            row['note'] == 'base rule'
            or row['rule'].partition(':')[0] in RESOURCES
        )
    }


def rules():
    """Ours, without those of paths that nobody has published."""
    return {
        rule.name: rule
        for rule in policies.list_rules()
        if rule not in recovery.RULES
    }


def test_no_rule_is_listed_twice():
    names = [rule.name for rule in policies.list_rules()]
    assert len(names) == len(set(names))


def test_names_are_the_published_ones():
    assert set(rules()) == set(published())


def test_later_rules_are_published_ones():
    assert {row['rule'] for row in reference.table('policies.csv')} > LATER


def test_defaults_are_the_published_ones():
    assert {name: rule.check_str for name, rule in rules().items()} == {
        name: row['default_check_string'] for name, row in published().items()
    }


def test_scopes_are_the_published_ones():
    assert {
        name: '|'.join(rule.scope_types or [])
        for name, rule in rules().items()
    } == {name: row['scope_types'] for name, row in published().items()}


def test_older_defaults_are_the_published_ones():
    wanted = {
        name: OLDER[row['older_default_persona']]
        for name, row in published().items()
        if row['note'] != 'base rule'
    }
    assert wanted == {
        name: rule.deprecated_rule and rule.deprecated_rule.check_str
        for name, rule in rules().items()
        if name in wanted
    }


def operations_of(row):
    return f'{row["method"]} {row["path"]}'


def documented(rule):
    return {
        f'{operation["method"]} {operation["path"]}'
        for operation in rule.operations
    }


def policies_of(row):
    """('share:get_all', ['list_all_projects', ...]) of a surface row."""
    name, _, more = row['policy'].partition(' (+ ')
    return name, [
        f'{name.partition(":")[0]}:{other.strip()}'
        for other in more.rstrip(')').split(',')
        if other
    ]


@pytest.mark.parametrize('name', [name for name in rules() if ':' in name])
def test_operations_are_those_the_published_api_asks_it_for(name):
    surface = [
        row
        for row in reference.table('api-surface.csv')
        if row['path'].startswith('/v2')
    ]
    asked = {
        operations_of(row)
        for row in surface
        if name in (policies_of(row)[0], *policies_of(row)[1])
    }
    said = documented(rules()[name])
    assert said >= asked
    assert said <= {operations_of(row) for row in surface}
    if any(policies_of(row)[0] == name for row in surface):
        assert said == asked


def test_rules_of_our_own_are_for_administrators():
    assert {rule.check_str for rule in recovery.RULES} == {base.ADMIN}
    published = {row['rule'] for row in reference.table('policies.csv')}
    assert published.isdisjoint(rule.name for rule in recovery.RULES)
