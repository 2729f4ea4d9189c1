"""A share instance is read with what belongs to it, by one statement."""

import itertools

import pytest

from manila_lite import exception
from manila_lite.db.queries.shares import instances, shares
from tests.support import sampling
from tests.support.rows import insert_instance, insert_share

pytestmark = sampling.dialects

METADATA = ({}, {'color': 'red'}, {'color': 'red', 'shape': 'round'})
PATHS = ([], ['/a'], ['/b', '/a', '/c'])


@pytest.mark.parametrize('lock_shared', [False, True])
def test_each_is_returned_once(db, lock_shared):
    def add(session, metadata, paths):
        share_id = insert_share(session)
        shares.METADATA.insert(session, share_id, metadata)
        instance_id = insert_instance(session, share_id)
        instances.insert_export_locations(
            session,
            instance_id,
            [
                {'path': path, 'is_admin_only': path == '/b', 'metadata': {}}
                for path in paths
            ],
        )
        return instance_id

    for metadata, paths in itertools.product(METADATA, PATHS):
        id = db.write(add, metadata, paths)
        row, found, exports = db.write(
            instances.get_with_details, id, lock_shared=lock_shared
        )
        assert (row.id, row.size, found) == (id, 1, metadata)
        assert exports == db.read(instances.list_export_locations, id)
        assert [one.path for one in exports] == sorted(paths)
        assert [one.path for one in exports if one.is_admin_only] == paths[:1] * (
            len(paths) > 1
        )


def test_one_that_is_gone(db):
    with pytest.raises(exception.ShareInstanceNotFound):
        db.read(instances.get_with_details, 'nothing')
