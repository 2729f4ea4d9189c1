"""Read the rules and messages of replicas."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import access, services
from manila_lite.share.drivers.dummy import driver as dummy

MAPPING = access.InstanceAccessRule.__table__
MESSAGE = services.Message.__table__


def refused(reason, verb, *args, **kwargs):
    with pytest.raises(exception.ReplicationException, match=reason):
        verb(*args, **kwargs)


def rules_on(cloud, replica_id):
    """Return the states of the rules of a replica."""
    return [
        row.state
        for row in cloud.rows(
            sa.select(MAPPING).where(MAPPING.c.share_instance_id == replica_id)
        )
    ]


def let_in(cloud, backend, replica_id):
    """Return the clients with access on a back end, and their levels."""
    found = dummy.access_inventory(cloud.folder / 'dummy' / backend)
    return {(to, level) for _, to, level in found.get(replica_id, ())}


def messages(cloud):
    """Return action and detail of every message, oldest first."""
    return [
        (row.action_id, row.detail_id)
        for row in cloud.rows(sa.select(MESSAGE).order_by(MESSAGE.c.created_at))
    ]


def update_all(cloud, share_id):
    """Resync every replica."""
    for row in cloud.replicas(share_id):
        if row.replica_state != 'active':
            cloud.ask('resync', row.id)
    cloud.settle()
