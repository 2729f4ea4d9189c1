"""Shares on two back ends."""

import sqlalchemy as sa

from manila_lite.db.models import services
from tests.simulation.crashing import Scene


def create(cloud, share_id):
    cloud.api.create(name='new', size=3, metadata={'key': 'value'})
    cloud.settle()


def delete(cloud, share_id):
    cloud.api.delete(share_id)
    cloud.settle()


def extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5})
    cloud.settle()


def force_extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5, 'force': True})
    cloud.settle()


def shrink(cloud, share_id):
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()


def force_delete(cloud, share_id):
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


def ensure(cloud, share_id):
    for backend in cloud.share.backends:
        # One share takes two pages.
        backend.endpoints.ensuring.page = 1
    host, _, _ = cloud.api.show(share_id)['host'].partition('#')
    cloud.api.ensure(host)
    cloud.settle()


def start(cloud, share_id):
    """Set up the back ends again, with a changed configuration."""
    service = services.Service.__table__
    cloud.db.write(
        lambda session: session.run(sa.update(service).values(backend_info='before'))
    )
    for backend in cloud.share.backends:
        backend.set_up()
    cloud.settle()


VERBS = Scene.named(
    create, delete, extend, force_extend, shrink, force_delete, ensure, start
)


def prepare(cloud):
    """Create a share of 2 GiB."""
    return cloud.create_share(size=2)


SCENE = Scene(name='shares', prepare=prepare, verbs=VERBS, seeds=(400, 3))
