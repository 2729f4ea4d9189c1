"""Drivers that reply as set by a test, and the state of shares."""

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine

HOST = 'node@alpha'


class Answering:
    """Wraps the driver of a back end with replies set by the test."""

    def __init__(self, backend, **answers):
        self._driver = backend.endpoints.ensuring.driver
        vars(self).update(answers)
        backend.endpoints.ensuring.driver = self

    def __getattr__(self, name):
        return getattr(self._driver, name)


def answering(cloud, **answers):
    return Answering(cloud.share.backends[0], **answers)


def lacking(*args):
    raise NotImplementedError


def failing(*args):
    raise exception.ShareBackendException(msg='it is on fire')


def elsewhere(context, shares):
    """Report other export paths than before."""
    return {
        share.id: {'export_locations': [f'new:/{share.share_id}']} for share in shares
    }


def statuses(cloud):
    return {
        share['id']: share['status']
        for share in cloud.api.get('/shares/detail')['shares']
    }


def paths(cloud, share_id):
    return [
        one['path']
        for one in cloud.api.get(f'/shares/{share_id}/export_locations')[
            'export_locations'
        ]
    ]


def service(cloud):
    return cloud.api.get(f'/services?host={HOST}')['services'][0]


def moves(cloud):
    journal = engine.Transition.__table__
    return [
        row.event
        for row in cloud.db.read(
            lambda session: session.rows(sa.select(journal).order_by(journal.c.id))
        )
    ]


def owed(cloud):
    work = engine.Work.__table__
    return cloud.db.read(
        lambda session: session.value(sa.select(sa.func.count()).select_from(work))
    )
