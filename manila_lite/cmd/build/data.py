"""Build the data service, which copies the content of shares."""

import dataclasses
import pathlib

from oslo_config import cfg

from manila_lite import conf as options, plugins
from manila_lite.cmd.build.process import (
    Process,
    RegisteredService,
    Registration,
    listen,
)
from manila_lite.cmd.driver_thread import in_driver_thread, in_main_thread
from manila_lite.data.backup_driver import BackupDriver
from manila_lite.data.backups import BackupsEndpoint
from manila_lite.data.copying import ShareContents, TreeCopier
from manila_lite.data.migrations import MigrationCopiesEndpoint
from manila_lite.data.mounts import CephMounts
from manila_lite.rpc.contract import Endpoints
from manila_lite.rpc.data import BINARY, TOPIC
from manila_lite.rpc.share import ConnectionsRpc, ShareMigrationRpc
from manila_lite.work.runner import Runner


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataEndpoints(Endpoints):
    """What a data service does, by concern."""

    backups: BackupsEndpoint
    migration_copies: MigrationCopiesEndpoint


def build_data(process: Process) -> RegisteredService:
    """Build the data service with its runner, heartbeat and listener."""
    conf = process.conf
    registration = Registration(process, BINARY, TOPIC)
    runner = Runner(
        process.db,
        queues=[TOPIC],
        handlers=build_data_endpoints(process).handlers(),
        owner=registration.owner,
        settings=process.settings(conf.work.data_workers),
        rng=process.rng,
        release=process.release.number,
        probe=process.sweep_probe,
    )
    process.runners.append(runner)
    return RegisteredService(
        registration,
        runner,
        [registration.heartbeat()],
        listeners=listen(process, [(TOPIC, conf.host, runner, [])]),
        fuzzy_delay=conf.periodic_fuzzy_delay,
    )


def build_data_endpoints(process: Process) -> DataEndpoints:
    """Build what carries out the work of data services."""
    conf = process.conf
    contents = ShareContents(
        process.client(ConnectionsRpc),
        CephMounts(pathlib.Path(conf.state_path) / 'mounts'),
    )
    copier = in_driver_thread(TreeCopier())
    return DataEndpoints(
        backups=BackupsEndpoint(
            in_driver_thread(_backup_driver(conf)),
            copier,
            contents,
            conf.backup_ignore_files,
            callable_here=in_main_thread,
        ),
        migration_copies=MigrationCopiesEndpoint(
            contents,
            copier,
            process.client(ShareMigrationRpc),
            message_ttl=conf.message_ttl,
            callable_here=in_main_thread,
        ),
    )


def _backup_driver(conf: cfg.ConfigOpts) -> BackupDriver:
    name = conf.backup_driver
    try:
        found = plugins.load('manila_lite.data.backups', name)
    except plugins.UnusablePlugin as error:
        raise options.BadConfiguration(
            f'backup_driver {name} cannot be used: {error}'
        ) from error
    driver: BackupDriver = found(conf)
    return driver
