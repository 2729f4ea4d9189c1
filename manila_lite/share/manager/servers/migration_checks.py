"""Checks and progress of migrations of share servers."""

from collections.abc import Callable, Mapping
import dataclasses
import typing

import orjson

from manila_lite import masking
from manila_lite.context import RequestContext
from manila_lite.db.rows import MigrationRow, ShareServerRow
from manila_lite.db.session import Database, Session
from manila_lite.share.drivers.base import ServerMigrationCompatibility, ShareDriver
from manila_lite.share.manager import driver_probe
from manila_lite.share.manager.driver_view import migration_view, server_view
from manila_lite.share.manager.driver_view.migration_view import LoadedMigration
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    MovingSnapshot,
)
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.states.share_server import SHARE_SERVER_TASK, ServerStatus, TaskState

_UNMET = {
    'writable': 'the driver cannot keep the shares writable',
    'nondisruptive': 'the driver cannot migrate without disruption',
    'preserve_snapshots': 'the driver cannot preserve snapshots',
}


@dataclasses.dataclass(eq=False)
class MigrationChecks:
    """Asks a driver whether it can take a share server over."""

    db: Database
    driver: ShareDriver
    probe: driver_probe.DriverProbe

    def answer(
        self,
        share_server_id: str,
        dest_host: str,
        options: 'WantedOptions',
        new_share_network_id: str | None,
    ) -> dict[str, typing.Any]:
        """Return what the driver supports, and `reasons` why not enough.

        This leaves nothing behind, even when the driver never replies.
        """
        source, shares, snapshots = self.db.read(
            _load_server_and_contents, share_server_id
        )
        try:
            result = self.probe.ask(
                self._compatibility_call(
                    self.db.read,
                    source,
                    dest_host,
                    shares,
                    snapshots,
                    new_share_network_id or source.row.share_network_id,
                ),
                driver_context(),
            )
        except driver_probe.BackendUnresponsive as error:
            result = driver_probe.ProbeResult(None, str(error))
        if result.reason:
            return {'compatible': False, 'reasons': [result.reason]}
        reply = result.value or {}
        return {
            **{
                name: bool(reply.get(name))
                for name in (
                    'compatible',
                    *_UNMET,
                    'migration_cancel',
                    'migration_get_progress',
                )
            },
            'reasons': incompatibilities(reply, options),
        }

    def check(
        self, read: Callable[..., typing.Any], loaded: LoadedMigration
    ) -> ServerMigrationCompatibility:
        """Return what the driver supports for a migration."""
        call = self._compatibility_call(
            read,
            loaded.source,
            loaded.dest_host,
            loaded.shares,
            loaded.snapshots,
            loaded.migration.new_share_network_id,
        )
        return call(driver_context()) or {}

    def _compatibility_call(
        self,
        read: Callable[..., typing.Any],
        source: LoadedServer,
        dest_host: str,
        shares: list[LoadedInstance],
        snapshots: list[MovingSnapshot],
        network_id: str | None,
    ) -> Callable[[RequestContext], ServerMigrationCompatibility]:
        old_network, new_network = (
            read(migration_view.network_for_driver, id, source.row.id)
            for id in (source.row.share_network_id, network_id)
        )
        return lambda context: self.driver.share_server_migration_check_compatibility(
            context,
            server_view.server_for_driver(source),
            dest_host,
            old_network,
            new_network,
            migration_view.request_spec(shares, snapshots),
        )


ServerContents = tuple[LoadedServer, list[LoadedInstance], list[MovingSnapshot]]
"""A server with the shares and snapshots on it."""


class WantedOptions(typing.NamedTuple):
    """What the administrator asks of a migration."""

    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool


def _load_server_and_contents(session: Session, server_id: str) -> ServerContents:
    return (
        server_view.load_server(session, server_id),
        *migration_view.load_contents(session, server_id),
    )


def incompatibilities(
    reply: Mapping[str, object], options: WantedOptions | MigrationRow
) -> list[str]:
    """Return the reasons why the driver cannot fulfil the request."""
    if not reply.get('compatible'):
        return ['the driver of the destination cannot migrate the share server']
    return [
        reason
        for name, reason in _UNMET.items()
        if getattr(options, name) and not reply.get(name)
    ]


def is_abandoned(server: ShareServerRow, migration: MigrationRow | None) -> bool:
    """Return whether no task will continue the migration of a server.

    An administrator may have reset the task state, or the status in the
    first phase: a server that is not migrating any more does not move.
    """
    if migration is None:
        return server.status == ServerStatus.SERVER_MIGRATING
    has_task = (
        server.task_state in SHARE_SERVER_TASK.in_flight
        or server.task_state == TaskState.PHASE1_DONE
    )
    if server.status == ServerStatus.SERVER_MIGRATING:
        return not has_task
    return migration.phase == 1 and server.task_state != TaskState.CANCELLING


MAX_DETAILS = 16384
"""Details that are longer, as JSON, are left out."""

_TOTAL = 'total_progress'


class Progress(typing.NamedTuple):
    """A percentage, None if unknown, and what else the driver reports.

    `details` is JSON, with secrets masked; None if nothing was reported.
    """

    percent: int | None = None
    details: str | None = None


def read_progress(reply: object) -> Progress:
    """Return the progress in a driver's reply, without what is invalid."""
    if not isinstance(reply, Mapping):
        return Progress()
    return Progress(
        _percent(reply.get(_TOTAL)),
        _details({key: reply[key] for key in reply if key != _TOTAL}),
    )


def _percent(total: typing.Any) -> int | None:
    try:
        return min(100, max(0, int(float(total))))
    except (TypeError, ValueError, OverflowError):
        return None


def _details(reported: dict[typing.Any, object]) -> str | None:
    try:
        text = orjson.dumps(
            masking.mask_values(reported),
            default=lambda value: masking.mask(str(value)),
            option=orjson.OPT_NON_STR_KEYS,
        ).decode()
    except orjson.JSONEncodeError:
        return None
    return text if len(text) <= MAX_DETAILS else None
