"""The rules match the published table."""

import pytest

from manila_lite import policies
from manila_lite.policies import base
from tests.support import reference

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
    'share_group_type',
    'share_group_types_spec',
    'qos_type',
    'qos_type_specs',
    'share_export_location',
    'share_instance_export_location',
    'message',
    'resource_lock',
    'share_transfer',
    'share_backup',
    'share_group',
    'share_group_snapshot',
    'share_access_rule',
    'share_access_metadata',
    'share_network',
    'share_network_subnet',
    'security_service',
    'share_server',
    'share_replica',
    'share_replica_export_location',
}
UNPUBLISHED = ('api_description:', 'identity:', 'recovery:')
DEPRECATED = {
    'admin': 'rule:admin_api',
    'admin or any user of the project': 'rule:default',
    'admin or owner user': 'rule:admin_or_owner_user',
    '': None,
}


def published():
    """Return the rows of base rules and of implemented resources."""
    return {
        row['rule']: row
        for row in reference.table('policies.csv')
        if row['note'] == 'base rule' or row['rule'].partition(':')[0] in RESOURCES
    }


def rules():
    """Return our rules, without those of unpublished paths."""
    return {
        rule.name: rule
        for rule in policies.list_rules()
        if not rule.name.startswith(UNPUBLISHED)
    }


def test_no_rule_is_listed_twice():
    names = [rule.name for rule in policies.list_rules()]
    assert len(names) == len(set(names))


def test_names_are_the_published_ones():
    assert set(rules()) == set(published())


def test_defaults_are_the_published_ones():
    assert {name: rule.check_str for name, rule in rules().items()} == {
        name: row['default_check_string'] for name, row in published().items()
    }


def test_scopes_are_the_published_ones():
    assert {
        name: '|'.join(rule.scope_types or []) for name, rule in rules().items()
    } == {name: row['scope_types'] for name, row in published().items()}


def test_deprecated_defaults_are_the_published_ones():
    wanted = {
        name: DEPRECATED[row['older_default_persona']]
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
        f'{operation["method"]} {operation["path"]}' for operation in rule.operations
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
def test_operations_are_the_published_ones(name):
    surface = [
        row
        for row in reference.table('api-surface.csv')
        if row['path'].startswith('/v2')
    ]
    published_operations = {
        operations_of(row)
        for row in surface
        if name in (policies_of(row)[0], *policies_of(row)[1])
    }
    listed = documented(rules()[name])
    assert listed >= published_operations
    assert listed <= {operations_of(row) for row in surface}
    if any(policies_of(row)[0] == name for row in surface):
        assert listed == published_operations


def test_rules_of_our_own_are_for_administrators():
    ours = [r for r in policies.list_rules() if r.name.startswith('recovery:')]
    assert {rule.check_str for rule in ours} == {base.ADMIN}
    published = {row['rule'] for row in reference.table('policies.csv')}
    assert published.isdisjoint(rule.name for rule in ours)
