"""Backups of shares that the dummy back end keeps."""

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import DomainMember

_CONTENT = ('content', 'used_gb')
"""The fields of a share that a backup has."""


class DummyBackups:
    def __init__(self, backend: DummyBackend, member: DomainMember):
        self._backend = backend
        self._member = member

    # Create

    def create_backup(
        self, share_instance: base.ShareForDriver, backup: base.ShareBackupForDriver
    ) -> None:
        backups = self._backend.state.backups
        steps = self._backend.options.dummy_driver_backup_steps
        with self._backend.lock:
            if backups.find(backup['id']) is None:
                share = self._member.current_record(share_instance['id'])
                self._backend.faults.midway()
                backups.put(
                    backup['id'],
                    {
                        'size': share['size'],
                        'steps': steps,
                        'done': 0,
                        'restore': None,
                        **{name: share[name] for name in _CONTENT},
                    },
                )

    def create_backup_continue(
        self, backup: base.ShareBackupForDriver
    ) -> base.BackupProgress:
        with self._backend.lock:
            record = self._get(backup['id'])
            done = min(record['done'] + 1, record['steps'])
            self._backend.state.backups.put(backup['id'], record | {'done': done})
        return _progress(done, record['steps'])

    # Restore

    def restore_backup(
        self, backup: base.ShareBackupForDriver, share_instance: base.ShareForDriver
    ) -> None:
        with self._backend.lock:
            record = self._get(backup['id'])
            self._member.current_record(share_instance['id'])
            self._backend.faults.midway()
            self._backend.state.backups.put(
                backup['id'],
                record | {'restore': {'to': share_instance['id'], 'done': 0}},
            )

    def restore_backup_continue(
        self, backup: base.ShareBackupForDriver, share_instance: base.ShareForDriver
    ) -> base.BackupProgress:
        with self._backend.lock:
            record = self._get(backup['id'])
            restore, steps = record['restore'], record['steps']
            if restore is None or restore['to'] != share_instance['id']:
                raise exception.ShareBackendException(
                    msg=f'backup {backup["id"]} is not being restored to '
                    f'{share_instance["id"]}'
                )
            if restore['done'] < steps:
                restore = restore | {'done': restore['done'] + 1}
                if restore['done'] == steps:
                    self._member.change_content(
                        share_instance['id'], *(record[name] for name in _CONTENT)
                    )
                    self._backend.faults.midway()
                self._backend.state.backups.put(
                    backup['id'], record | {'restore': restore}
                )
        return _progress(restore['done'], steps)

    # Delete

    def delete_backup(self, backup: base.ShareBackupForDriver) -> None:
        with self._backend.lock:
            self._backend.state.backups.drop(backup['id'])

    def _get(self, backup_id: str) -> records.Record:
        record = self._backend.state.backups.find(backup_id)
        if record is None:
            raise exception.ShareBackendException(
                msg=f'backup {backup_id} does not exist'
            )
        return record


def _progress(done: int, steps: int) -> base.BackupProgress:
    return {'total_progress': str(100 * done // steps)}
