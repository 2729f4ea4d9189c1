"""Faults, recorded calls and state: what tests need of the dummy driver."""

from collections import deque
from collections.abc import Callable
import contextlib
import fnmatch
import pathlib
import threading
import time
from typing import Any, NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy import state

ADDRESS = '10.0.0.10'
ADMIN_ADDRESS = '10.0.0.20'

LockContext = contextlib.AbstractContextManager[object]

_MAX_ACCESS_CALLS = 1_000


class AccessCall(NamedTuple):
    """An access call: the number of rules, and the changed ones."""

    method: str
    subject_id: str
    rules: int
    added: list[str]
    deleted: list[str]
    updated: list[str]


class InstrumentedDriver(base.ShareDriver):
    """A driver base whose methods can be made to fail or hang."""

    def __init__(
        self,
        *args: Any,
        sleep: Callable[[float], object] = time.sleep,
        **kwargs: Any,
    ):
        super().__init__((True, False), *args, **kwargs)
        options = self.configuration
        self._state = state.DummyState(
            pathlib.Path(options.dummy_driver_state_path).absolute()
        )
        self._lock: LockContext = threading.RLock()  # read, change and write
        delays = options.dummy_driver_driver_methods_delays
        self.faults = faults.FaultInjector(
            faults.instrumented_methods(type(self)),
            delay=options.dummy_driver_default_driver_method_delay,
            delays={method: float(delay) for method, delay in delays.items()},
            sleep=sleep,
            is_unreachable=self._state.is_unreachable,
        )
        self.fail_next = self.faults.fail_next
        self.half_fail_next = self.faults.half_fail_next
        self.lose_reply_next = self.faults.lose_reply_next
        self.hang_next = self.faults.hang_next
        self._schedule_configured_faults()
        self._refuses_rule: state.RefusesRule = self._refuses_by_option
        self._access_calls: deque[AccessCall] = deque(maxlen=_MAX_ACCESS_CALLS)

    def _schedule_configured_faults(self) -> None:
        options = self.configuration
        try:
            for method, times in options.dummy_driver_fail_methods.items():
                self.fail_next(
                    method, None if times == 'always' else int(times)
                )
            for method in options.dummy_driver_hang_methods:
                self.hang_next(method, times=None)
            for method in options.dummy_driver_answer_lost_methods:
                self.lose_reply_next(method, times=None)
        except ValueError as error:
            raise exception.BadConfiguration(
                reason=f'back end "{options.config_group}": a '
                f'dummy_driver_*_methods option: {error}'
            ) from error

    # Calls

    @property
    def calls(self) -> list[faults.RecordedCall]:
        """Return the latest calls, oldest first."""
        return self.faults.calls

    @property
    def access_calls(self) -> list[AccessCall]:
        """Return the latest access calls that ran, oldest first."""
        with self._lock:
            return list(self._access_calls)

    # Access

    def refuse_rules(self, refuses: state.RefusesRule | None) -> None:
        """Make single rules fail from now on; None ends that.

        `refuses` is called with allow, update or deny, and the rule. Rules
        that it refuses get the state error in the reply.
        """
        with self._lock:
            self._refuses_rule = refuses or self._refuses_by_option

    def _refuses_by_option(
        self, verb: str, rule: base.AccessRuleForDriver
    ) -> bool:
        patterns = self.configuration.dummy_driver_refuse_clients
        return any(
            fnmatch.fnmatchcase(rule['access_to'], pattern)
            for pattern in patterns
        )

    def _change_access(
        self,
        method: str,
        access: state.AccessStore,
        subject_id: str,
        rules: base.AccessRules,
        *,
        add: base.AccessRules,
        delete: base.AccessRules,
        update: base.AccessRules,
    ) -> base.AccessReplies:
        self._access_calls.append(
            AccessCall(
                method,
                subject_id,
                len(rules),
                *(
                    [rule['access_id'] for rule in changed]
                    for changed in (add, delete, update)
                ),
            )
        )
        return access.change(
            subject_id,
            rules,
            add=add,
            delete=delete,
            update=update,
            refuses=self._refuses_rule,
            midway=self.faults.midway,
        )

    # Lookup

    def _record(self, share_id: str) -> records.Record:
        record = self._state.shares.find(share_id)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share_id)
        return record

    def _snapshot_record(self, snapshot_id: str) -> records.Record:
        record = self._state.snapshots.find(snapshot_id)
        if record is None:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot_id)
        return record


def export_locations(
    record: records.Record, folder: str
) -> list[base.ExportLocation]:
    """Return where users and administrators find a share or snapshot."""
    return [
        _export_location(record, folder, address, is_admin_only)
        for addresses, is_admin_only in (
            (record.get('addresses', [ADDRESS]), False),
            (record.get('admin_addresses', [ADMIN_ADDRESS]), True),
        )
        for address in addresses
    ]


def _export_location(
    record: records.Record, folder: str, address: str, is_admin_only: bool
) -> base.ExportLocation:
    path = (
        f'\\\\{address}\\{record["export"]}'
        if record['share_proto'] == 'CIFS'
        else f'{address}:/{folder}/{record["export"]}'
    )
    return {
        'path': path,
        'is_admin_only': is_admin_only,
        'metadata': {'preferred': str(not is_admin_only)},
    }
