import dataclasses

import pytest

from manila_lite.share.drivers.base import (
    ShareForDriver,
    SnapshotForDriver,
    normalise_export_locations,
)

SHARE = ShareForDriver(
    id='instance',
    share_id='share',
    name='share-instance',
    size=2,
    share_proto='NFS',
    project_id='project',
    host='host@backend#pool',
    metadata={'key': 'value'},
    export_locations=[
        {'path': 'first', 'is_admin_only': False, 'metadata': {}},
        {'path': 'second', 'is_admin_only': True, 'metadata': {}},
    ],
)
SNAPSHOT = SnapshotForDriver(
    id='taken', snapshot_id='snapshot', name='snapshot-taken', size=1, share=SHARE
)


def test_fields_are_attributes_and_items():
    assert SHARE.share_proto == SHARE['share_proto'] == 'NFS'
    assert SHARE.get('host') == 'host@backend#pool'
    assert SHARE.get('unheard-of', 'other') == 'other'
    assert 'size' in SHARE
    assert 'get' not in SHARE
    with pytest.raises(KeyError):
        _ = SHARE['unheard-of']


def test_share_can_be_converted_to_a_dict():
    plain = dict(SHARE)
    assert plain['id'] == 'instance'
    assert plain['export_location'] == 'first'
    assert len(plain) == len(SHARE)


def test_share_without_exports_has_no_export_location():
    bare = dataclasses.replace(SHARE, export_locations=[])
    assert bare['export_location'] is None


def test_share_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SHARE.size = 3
    with pytest.raises(TypeError):
        SHARE['size'] = 3


def test_snapshot_has_fields_of_its_share():
    assert SNAPSHOT['share_id'] == 'instance'
    assert SNAPSHOT['share_instance_id'] == 'instance'
    assert SNAPSHOT['share_name'] == 'share-instance'
    assert SNAPSHOT['share']['host'] == 'host@backend#pool'
    assert SNAPSHOT['share_size'] == SNAPSHOT['size'] == 1
    assert dict(SNAPSHOT)['project_id'] == 'project'


@pytest.mark.parametrize(
    'reply, expected',
    [
        (None, []),
        ([], []),
        ('path', [('path', False, {})]),
        (['one', 'two'], [('one', False, {}), ('two', False, {})]),
        ([{'path': 'one'}, 'two'], [('one', False, {}), ('two', False, {})]),
        (
            ({'path': 'one', 'is_admin_only': True, 'metadata': {'preferred': True}},),
            [('one', True, {'preferred': 'True'})],
        ),
        ([{'path': 'one', 'metadata': None}], [('one', False, {})]),
    ],
)
def test_export_locations_may_have_any_form(reply, expected):
    assert [
        tuple(location.values()) for location in normalise_export_locations(reply)
    ] == expected
