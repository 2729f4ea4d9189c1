"""Managing and unmanaging existing directories."""

from collections.abc import Iterator, Mapping
import contextlib
import pathlib

from manila_lite import exception
from manila_lite.share.drivers import base, records, trees
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.store import SHARES, SNAPSHOTS, LocalItem
from manila_lite.share.drivers.space import managed_size


class LocalManaging:
    """Nothing is moved: directories are used in place."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def manage_existing(
        self, share: base.ShareForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageReply:
        """Manage a directory below the root.

        The option `size` gives its size in GiB. Otherwise it is the size
        recorded when it was unmanaged, or else that of its content.
        """
        item = self._backend.store.share(share['name'])
        location = share['export_location'] or ''
        with self._locked(item, location, exception.ManageInvalidShare) as work:
            record = item.find() or self._manage_directory(
                item,
                work,
                self._backend.local_path(SHARES, location),
                driver_options,
                {'size': 0, 'share_proto': share['share_proto']},
            )
            self._remove_previous_records(item, record)
        return {
            'size': record['size'],
            'export_locations': self._backend.export_locations(item, record),
        }

    def unmanage(self, share: base.ShareForDriver) -> None:
        """Stop managing a share; its clients keep their access."""
        item = self._backend.store.share(share['name'])
        with self._backend.store.locked(share['name']):
            if item.find() is None and item.find_unmanaged() is None:
                raise exception.ShareResourceNotFound(share_id=share['id'])
            item.unmanage()

    def manage_existing_snapshot(
        self, snapshot: base.SnapshotForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageSnapshotReply:
        """Manage a former snapshot or any directory below the root.

        The provider location is that of the snapshot, or a path.
        """
        item = self._backend.store.snapshot(snapshot['name'])
        location = snapshot['provider_location'] or ''
        share = self._backend.store.share(snapshot['share_name'])
        owner = share.find()
        if owner is None:
            raise exception.ShareResourceNotFound(share_id=share.name)
        with self._locked(item, location, exception.ManageInvalidShareSnapshot) as work:
            record = item.find() or self._manage_directory(
                item,
                work,
                self._backend.local_path(SNAPSHOTS, str(self._path_of(location))),
                driver_options,
                {
                    'size': owner['size'],
                    'of': share.relative_data_path(owner),
                    'share_proto': owner['share_proto'],
                },
            )
            self._remove_previous_records(item, record)
        return {
            'size': record['size'],
            'provider_location': location,
            'export_locations': self._backend.export_locations(item, record),
        }

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Stop managing a snapshot; its clients keep their access."""
        with self._backend.store.locked(snapshot['name']):
            self._backend.store.snapshot(snapshot['name']).unmanage()

    @contextlib.contextmanager
    def _locked(
        self, item: LocalItem, location: str, refusal: type[exception.ManilaLiteError]
    ) -> Iterator[pathlib.Path]:
        """Lock what is managed; raise the refusal for what cannot be."""
        try:
            with (
                self._backend.store.managing_locked(),
                self._backend.store.locked_work_directory(item.name) as work,
            ):
                yield work
        except ValueError as error:
            raise refusal(reason=f'{location}: {error}') from error

    def _path_of(self, location: str) -> pathlib.Path:
        # Joining with an absolute path returns that path unchanged.
        return (
            self._backend.store.root
            / SNAPSHOTS
            / (location if location.startswith('/') else f'{location}/data')
        )

    def _manage_directory(
        self,
        item: LocalItem,
        work: pathlib.Path,
        path: str,
        driver_options: Mapping[str, str],
        expected: records.Record,
    ) -> records.Record:
        directory = self._backend.store.manageable_directory(item.kind, path)
        known = expected
        for previous in self._backend.store.list_unmanaged(item.kind, directory):
            known = previous.find_unmanaged() or expected
        for name in ('share_proto', 'of'):
            if known.get(name) != expected.get(name):
                raise ValueError(f'it belongs to {known.get(name)}')
        used = trees.used_bytes(self._backend.store.root / directory)
        record = expected | {
            'directory': directory,
            'size': managed_size(known['size'], used, driver_options.get('size')),
        }
        item.publish(work, record)
        return record

    def _remove_previous_records(self, item: LocalItem, record: records.Record) -> None:
        """Remove earlier records and exports of the same directory."""
        for previous in self._backend.store.list_unmanaged(
            item.kind, item.relative_data_path(record)
        ):
            previous.remove_unmanaged()
