"""Metadata of snapshots: visibility and versions."""

import pytest

from tests.functional.api.metadata_client import request_metadata
from tests.functional.api.snapshot_client import create_snapshot, show_snapshot
from tests.support.cloud_images import prepared


@pytest.fixture
@prepared
def snapshot(cloud, member):
    """The path of a snapshot with metadata."""
    share_id = member.create()['id']
    cloud.settle()
    made = create_snapshot(member, share_id, metadata={'color': 'red'})
    return f'/snapshots/{made["id"]}'


@pytest.mark.facts('LP2004230')
def test_another_project_finds_no_snapshot(stranger, snapshot):
    for method, key, metadata in (
        ('GET', '', None),
        ('GET', '/color', None),
        ('POST', '', {'a': 'b'}),
        ('PUT', '', {'a': 'b'}),
        ('POST', '/a', {'a': 'b'}),
        ('DELETE', '/color', None),
    ):
        request_metadata(stranger, method, snapshot, key, metadata, expect=404)


def test_snapshots_have_no_metadata_below_2_73(cloud, member):
    share_id = member.create()['id']
    cloud.settle()
    created = create_snapshot(member, share_id, version='2.72', metadata={'a': 'b'})
    assert 'metadata' not in created
    assert show_snapshot(member, created['id'])['metadata'] == {}
    assert 'metadata' not in show_snapshot(member, created['id'], version='2.72')
