"""A contract to paint, the painter that carries it out, and its work."""

import random

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.transitions import fire
from manila_lite.messages import Action, Detail
from manila_lite.quota.charges import Owner
from manila_lite.rpc import contract
from manila_lite.rpc.contract import durable, implements
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import table

CTX = RequestContext(project_id='asking', request_id='req-1')
OWNER = Owner('owner')


class PaintingRpc(contract.Contract):
    topic, version = 'painters', '1.0'

    @durable(
        failure=(SHARE_INSTANCE, 'extend_failed'),
        action=Action.EXTEND,
        detail=Detail.DRIVER_FAILED_EXTEND,
        refused={
            exception.ShareShrinkingPossibleDataLoss: (
                'extend_refused',
                Detail.DRIVER_REFUSED_SHRINK,
            )
        },
    )
    def widen(self, ctx, instance_id): ...

    @durable(
        failure=(SHARE_INSTANCE, 'delete_failed'), action=Action.DELETE, repeatable=True
    )
    def remove(self, ctx, instance_id): ...

    @durable()
    def look(self, ctx, instance_id): ...


@implements(PaintingRpc)
class Painter:
    """Runs the functions in `does` and records its calls."""

    def __init__(self):
        self.calls = []
        self.does = {}

    def called(self, name, *args):
        self.calls.append(name)
        do = self.does.get(name)
        return do and do(*args)

    def prepare_widen(self, session, job):
        return self.called('prepare', session, job)

    def widen(self, job, instance_id):
        self.called('widen', job)
        job.finish(fire, SHARE_INSTANCE, instance_id, 'extended')

    def dropped_widen(self, session, job):
        self.called('dropped', session, job)

    def failed_widen(self, session, job, error):
        return self.called('failed', session, job, error)

    def remove(self, job, instance_id):
        self.called('remove', job)
        job.finish(fire, SHARE_INSTANCE, instance_id, 'deleted')

    def look(self, job, instance_id):
        self.called('look', job)
        job.finish()

    def rescue(self, job):
        self.called('rescue', job)
        job.finish(fire, SHARE_INSTANCE, job.resource_id, 'extend_refused')


class Steady(random.Random):
    def uniform(self, low, high):
        return (low + high) / 2


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        self.now += 0.001  # so that later events have later times
        return self.now


def reserved(db):
    return db.read(
        lambda session: session.value(
            sa.text("SELECT reserved FROM quota_usages WHERE resource = 'gigabytes'")
        )
    )


def raising(error):
    def do(*args):
        raise error

    return do


def run_all(runner):
    while runner.step():
        pass


def abandon(db, work_id):
    """Claim the work for a dead owner, with an expired lease."""
    assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0)


FAILED = (
    'asking',
    Action.EXTEND.value,
    Detail.DRIVER_FAILED_EXTEND.value,
    'share-of-i',
    'req-1',
)
