"""Each encryption key of a project is charged once, while a share uses it."""

import functools
import uuid

import pytest

from manila_lite import exception
from manila_lite.quota import encryption_keys
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import ALICE, DEFAULTS
from tests.support import cloud_snapshots, sampling, share_transfers
from tests.support.cloud import TYPE_ID
from tests.support.concurrent_calls import at_once

KEY = '11111111-2222-4333-8444-555555555555'
OTHER = '66666666-7777-4888-9999-000000000000'


def enable_encryption(cloud):
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'encryption_support': 'share'}},
        expect=200,
    )


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    enable_encryption(cloud)
    yield cloud
    cloud.check_invariants()


def create(cloud, key=KEY, **body):
    share = cloud.api.create(encryption_key_ref=key, **body)
    cloud.settle()
    return share['id']


def delete(cloud, share):
    cloud.api.request('DELETE', f'/shares/{share}', expect=202)
    cloud.settle()


def used(cloud, project='project'):
    return cloud.usage('encryption_keys', project)


def limit(cloud, keys, project='project'):
    cloud.api.request(
        'PUT',
        f'/quota-sets/{project}',
        {'quota_set': {'encryption_keys': keys}},
        expect=200,
    )


def test_key_counts_once_until_its_last_share_is_gone(cloud):
    first, second = create(cloud), create(cloud)
    assert used(cloud) == (1, 0)
    other = create(cloud, OTHER)
    assert used(cloud) == (2, 0)
    delete(cloud, first)
    assert used(cloud) == (2, 0)
    delete(cloud, second)
    assert used(cloud) == (1, 0)
    delete(cloud, other)
    assert used(cloud) == (0, 0)


def test_new_key_past_the_limit_is_refused_and_a_known_one_is_not(cloud):
    create(cloud)
    limit(cloud, 1)
    refused = cloud.api.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'encryption_key_ref': OTHER}},
        expect=413,
    )
    assert 'EncryptionKeysLimitExceeded' in refused.json['overLimit']['message']
    assert cloud.usage('shares') == (1, 0)
    create(cloud)
    assert used(cloud) == (1, 0)


def test_clone_uses_the_key_of_its_source(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    source = create(cloud)
    snapshot = cloud_snapshots.create_available(cloud, source)
    clone = cloud.api.create(snapshot_id=snapshot)['id']
    cloud.settle()
    assert used(cloud) == (1, 0)
    cloud.api.request('DELETE', f'/snapshots/{snapshot}', expect=202)
    cloud.settle()
    delete(cloud, source)
    assert used(cloud) == (1, 0)
    delete(cloud, clone)
    assert used(cloud) == (0, 0)


@pytest.mark.parametrize('known', [False, True])
def test_transfer_moves_the_key_to_the_new_project(cloud, known):
    share = create(cloud)
    another = share_transfers.client_of(cloud, 'another')
    if known:
        another.create(encryption_key_ref=KEY)
        cloud.settle()
    offer = share_transfers.offer(cloud.api, share)
    share_transfers.accept(another, offer)
    cloud.settle()
    assert used(cloud) == (0, 0)
    assert used(cloud, 'another') == (1, 0)


def test_transfer_past_the_limit_of_keys_is_refused(cloud):
    share = create(cloud)
    limit(cloud, 0, 'another')
    offer = share_transfers.offer(cloud.api, share)
    another = share_transfers.client_of(cloud, 'another')
    share_transfers.accept(another, offer, expect=413)
    assert used(cloud) == (1, 0)


def test_deferred_deletion_releases_the_key_at_once(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true')
    enable_encryption(cloud)
    share = create(cloud)
    cloud.api.request('DELETE', f'/shares/{share}', expect=202)
    assert used(cloud) == (0, 0)
    cloud.settle()
    cloud.check_invariants()


@sampling.dialects
@pytest.mark.usefixtures('types')
def test_concurrent_shares_charge_each_key_once(db):
    def use(key):
        try:
            db.write(encryption_keys.charge_key, ALICE, key, limits=DEFAULTS)
        except exception.EncryptionKeysLimitExceeded:
            return False
        return True

    def give_back(key):
        db.write(encryption_keys.release_key, ALICE.project_id, key)

    # The first use of a project creates its usage rows.
    use(KEY)
    give_back(KEY)
    keys = [str(uuid.UUID(int=number)) for number in range(4)] * 3
    held = [
        key
        for key, has in zip(
            keys, at_once(*(functools.partial(use, key) for key in keys)), strict=True
        )
        if has
    ]
    assert len(set(held)) == DEFAULTS['encryption_keys'] == 3
    assert len(held) == 9
    assert quota_rows.usage(db, 'encryption_keys') == (3, 0)
    at_once(
        *(functools.partial(give_back, key) for key in held),
        *(functools.partial(use, held[0]) for _ in range(3)),
    )
    assert quota_rows.usage(db, 'encryption_keys') == (1, 0)
    for _ in range(3):
        give_back(held[0])
    assert quota_rows.usage(db, 'encryption_keys') == (0, 0)
    assert quota_rows.differences(db) == []
