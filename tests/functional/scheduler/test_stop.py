"""A scheduler that stops says so, unless it is still at work."""

import threading

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.scheduler import filters
from tests.support.service_process import TIMEOUT

INCARNATION = services.ServiceIncarnation.__table__
SERVICE = services.Service.__table__


class _Waiting(filters.Filter):
    """Occupies the worker until it is released."""

    def __init__(self):
        self.reached = threading.Event()
        self.released = threading.Event()

    def rejection_reason(self, pool, request):
        self.reached.set()
        assert self.released.wait(TIMEOUT)
        return None


def is_recorded(node):
    return bool(
        node.rows(
            sa.select(INCARNATION.c.service_id)
            .join(SERVICE, SERVICE.c.id == INCARNATION.c.service_id)
            .where(SERVICE.c.binary == 'manila-scheduler')
        )
    )


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_scheduler_is_recorded_as_stopped_when_its_work_has_ended(build_node):
    node = build_node()
    node.register()
    waiting = _Waiting()
    node.scheduler.call_endpoints[0].rules.filters.append(waiting)
    node.create(1)
    node.scheduler.runners[0].start()
    assert waiting.reached.wait(TIMEOUT)
    assert not node.scheduler.stop(0.1)
    assert is_recorded(node)
    waiting.released.set()
    assert node.scheduler.stop(TIMEOUT)
    assert not is_recorded(node)
