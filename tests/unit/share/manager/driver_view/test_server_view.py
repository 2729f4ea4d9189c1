"""What drivers are given has the types of the rows that it is made from."""

import types
import typing

import pytest

from manila_lite.db import rows
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view.server_view import from_row

# With the fields that the callers of `from_row` give.
MADE = [
    (base.AccessRuleForDriver, rows.AccessRuleRow, set()),
    (base.NetworkAllocation, rows.AllocationRow, set()),
    (
        base.NetworkInfo,
        rows.SubnetRow,
        {
            'server_id',
            'backend_name',
            'share_network_subnet_id',
            'security_services',
            'network_allocations',
            'admin_network_allocations',
            'subnet_metadata',
        },
    ),
    (base.SecurityServiceForDriver, rows.SecurityServiceRow, set()),
    (
        base.ShareBackupForDriver,
        rows.ShareBackupRow,
        {
            'name',
            'display_name',
            'display_description',
            'backup_options',
            'progress',
            'restore_progress',
        },
    ),
    (
        base.ShareForDriver,
        rows.InstanceRow,
        {
            'name',
            'qos_specs',
            'share_server',
            'scheduled_at',
            'metadata',
            'export_locations',
        },
    ),
    (
        base.ShareGroupForDriver,
        rows.ShareGroupRow,
        {'share_types', 'shares', 'share_server_id'},
    ),
    (
        base.ShareGroupSnapshotForDriver,
        rows.ShareGroupSnapshotRow,
        {'share_group', 'share_group_snapshot_members'},
    ),
    (
        base.ShareServerForDriver,
        rows.ShareServerRow,
        {'share_network_subnet_ids', 'backend_details', 'network_allocations'},
    ),
    *(
        (base.SnapshotForDriver, row, {'name', 'size', 'share', 'status', 'metadata'})
        for row in (rows.SnapshotInstanceRow, rows.MigratingSnapshotRow)
    ),
]


def _kinds(hint):
    return set(typing.get_args(hint)) or {hint}


@pytest.mark.parametrize(
    'value, row, others', MADE, ids=[f'{v.__name__}-{r.__name__}' for v, r, _ in MADE]
)
def test_row_has_every_field_with_its_type(value, row, others):
    columns = typing.get_type_hints(row)
    fields = {
        name: hint
        for name, hint in typing.get_type_hints(value).items()
        if name not in others and not name.startswith('_')
    }
    assert fields.keys() - columns.keys() == set()
    assert {
        name for name, hint in fields.items() if _kinds(columns[name]) - _kinds(hint)
    } == set()


def test_value_has_the_columns_of_the_row_and_what_is_given():
    row = types.SimpleNamespace(
        id='1',
        share_id='2',
        access_type='ip',
        access_to='10.0.0.0/8',
        access_level='rw',
        access_key=None,
        state='active',
        mapping_id='3',
    )
    rule = from_row(base.AccessRuleForDriver, row, access_level='ro')
    assert dict(rule) == {
        'id': '1',
        'share_id': '2',
        'access_type': 'ip',
        'access_to': '10.0.0.0/8',
        'access_level': 'ro',
        'access_key': None,
        'state': 'active',
        'access_id': '1',
        'deleted': False,
        'deleted_at': None,
    }
    del row.state
    with pytest.raises(AttributeError):
        from_row(base.AccessRuleForDriver, row)
