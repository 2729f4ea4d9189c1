"""Build what ends the work of a queue without its driver.

The back end may be gone for good, and its section of the configuration
with it.
"""

import typing

from manila_lite import exception
from manila_lite.cmd.build.backend import build_endpoints
from manila_lite.cmd.build.data import build_data_endpoints
from manila_lite.cmd.build.process import Process
from manila_lite.db.queries.networks import allocations
from manila_lite.db.session import Session
from manila_lite.network.base import ADMIN, USER
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.data import TOPIC as DATA_TOPIC
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.share import BINARY
from manila_lite.scheduler.manager import FiltersAndWeighers, PlacementEndpoint
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.servers.setup import ServerNetworks, ServerSetup
from manila_lite.work.execution import Executor
from manila_lite.work.runner import Runner


class GoneDriver:
    """The driver of a back end that is gone: every use of it is refused."""

    def __init__(self, host: str):
        self._host = host

    def __getattr__(self, name: str) -> typing.Any:
        raise exception.ServiceNotUp(binary=BINARY, host=self._host)


class _Addresses:
    """Frees the addresses of share servers without a network plug-in."""

    def deallocate(self, session: Session, share_server_id: str) -> int:
        return sum(
            allocations.remove(session, share_server_id, label, None)
            for label in (USER, ADMIN)
        )


def build_canceller(process: Process, queue: str) -> Executor:
    """Build an executor for the failures of a queue; it runs no work."""
    conf, db = process.conf, process.db
    record = None
    if queue == DATA_TOPIC:
        handlers = build_data_endpoints(process).handlers()
    elif queue == SCHEDULER_TOPIC:
        placement = PlacementEndpoint(
            db,
            FiltersAndWeighers((), (), ()),
            down_time=conf.service_down_time,
            wait_for_backends=0.0,
        )
        handlers = endpoint_handlers(placement)
    else:
        driver = typing.cast(ShareDriver, GoneDriver(queue))
        names = NameTemplates(
            conf.share_name_template, conf.share_snapshot_name_template
        )
        setup = ServerSetup(
            db,
            driver,
            queue,
            names=names,
            networks=typing.cast(ServerNetworks, _Addresses()),
            message_ttl=conf.message_ttl,
        )
        endpoints = build_endpoints(process, driver, names, setup, queue)
        handlers = endpoints.handlers()
        record = endpoints.reconciliation.record_exhausted
    return Runner(
        db,
        queues=[queue],
        handlers=handlers,
        owner=f'manila-lite-manage:{process.id}',
        record=record,
        settings=process.settings(1),
        rng=process.rng,
        release=process.release.number,
    ).executor
