"""Replicas of a cloud that has one share, `cloud.share_id`."""

from tests.support.replicated import backend_of


def on(cloud, name):
    """Return the id of the replica on a back end."""
    return next(
        row.id for row in cloud.replicas(cloud.share_id) if backend_of(row) == name
    )


def write(cloud, name, content):
    """Write to a replica; raises unless it is active on its back end."""
    cloud.driver(name).write(on(cloud, name), content)
