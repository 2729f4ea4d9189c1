"""The rules equal the published table."""

import pytest

from manila_lite import policies
from tests.support import reference

# Capabilities of the share resource that are not served yet.
LATER = {
    'share:manage', 'share:unmanage', 'share:access_get',
    'share:access_get_all', 'share:allow_access', 'share:deny_access',
    'share:migration_start', 'share:migration_complete',
    'share:migration_cancel', 'share:migration_get_progress',
    'share:revert_to_snapshot',
    'share:create_snapshot', 'share:delete_snapshot',
    'share:snapshot_update',
}
RESOURCES = {
    'availability_zone', 'scheduler_stats', 'service', 'quota_set',
    'quota_class_set', 'share', 'share_instance', 'share_type',
    'share_types_extra_spec', 'share_export_location',
    'share_instance_export_location', 'message',
}
OLDER = {
    'admin': 'rule:admin_api',
    'admin or any user of the project': 'rule:default',
    '': None,
}


def published():
    """The rows of the base rules and of the resources served."""
    return {row['rule']: row for row in reference.table('policies.csv')
            if row['rule'] not in LATER
            and (row['note'] == 'base rule'
                 or row['rule'].partition(':')[0] in RESOURCES)}


def rules():
    return {rule.name: rule for rule in policies.list_rules()}


def test_no_rule_is_listed_twice():
    assert len(policies.list_rules()) == len(rules())


def test_names_are_the_published_ones():
    assert set(rules()) == set(published())


def test_later_rules_are_published_ones():
    assert {row['rule'] for row in reference.table('policies.csv')} > LATER


def test_defaults_are_the_published_ones():
    assert ({name: rule.check_str for name, rule in rules().items()}
            == {name: row['default_check_string']
                for name, row in published().items()})


def test_scopes_are_the_published_ones():
    assert ({name: '|'.join(rule.scope_types or [])
             for name, rule in rules().items()}
            == {name: row['scope_types']
                for name, row in published().items()})


def test_older_defaults_are_the_published_ones():
    wanted = {name: OLDER[row['older_default_persona']]
              for name, row in published().items()
              if row['note'] != 'base rule'}
    assert wanted == {
        name: rule.deprecated_rule and rule.deprecated_rule.check_str
        for name, rule in rules().items() if name in wanted}


def operations_of(row):
    return f'{row["method"]} {row["path"]}'


def documented(rule):
    return {f'{operation["method"]} {operation["path"]}'
            for operation in rule.operations}


def policies_of(row):
    """('share:get_all', ['list_all_projects', ...]) of a surface row."""
    name, _, more = row['policy'].partition(' (+ ')
    return name, [f'{name.partition(":")[0]}:{other.strip()}'
                  for other in more.rstrip(')').split(',') if other]


@pytest.mark.parametrize('name', [
    rule.name for rule in policies.list_rules() if ':' in rule.name])
def test_operations_are_those_the_published_api_asks_it_for(name):
    surface = [row for row in reference.table('api-surface.csv')
               if row['path'].startswith('/v2')]
    asked = {operations_of(row) for row in surface
             if name in (policies_of(row)[0], *policies_of(row)[1])}
    said = documented(rules()[name])
    assert said >= asked
    assert said <= {operations_of(row) for row in surface}
    if any(policies_of(row)[0] == name for row in surface):
        assert said == asked
