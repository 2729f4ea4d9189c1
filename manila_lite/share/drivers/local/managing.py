"""Directories that were there before, taken over and let go again."""

from collections.abc import Mapping
import pathlib

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.local import trees
from manila_lite.share.drivers.local.store import SNAPSHOTS
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.local.store import LocalStore
from manila_lite.share.drivers.local.store import managed_size


class LocalManaging(base.ShareDriver):
    """Nothing is moved: what was there is used where it lies."""

    _places: LocalStore

    def manage_existing(
        self, share: base.ShareForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageReply:
        """Take over a directory below the root, with the size it is given.

        The option `size` tells the GiB; without it those it had when it
        was let go count, or else what it holds.
        """
        home = self._places.share(share['name'])
        try:
            with self._places.managing(), self._places.work(home.name) as work:
                record = home.find() or self._take_over(
                    home,
                    work,
                    share['export_location'] or '',
                    driver_options,
                    {'size': 0, 'share_proto': share['share_proto']},
                )
                self._forget_before(home, record)
        except ValueError as error:
            raise exception.ManageInvalidShare(
                reason=f'{share["export_location"]}: {error}'
            ) from error
        return {
            'size': record['size'],
            'export_locations': export_locations(home.data(record)),
        }

    def unmanage(self, share: base.ShareForDriver) -> None:
        """Forget a share. Who may use it may do so still."""
        self._places.share(share['name']).let_go()

    def manage_existing_snapshot(
        self,
        snapshot: base.SnapshotForDriver,
        driver_options: Mapping[str, str],
    ) -> base.ManageSnapshotReply:
        """Take over what was a snapshot, or any directory below the root.

        The provider location is the one it had, or its path.
        """
        home = self._places.snapshot(snapshot['name'])
        location = snapshot['provider_location'] or ''
        share = self._places.share(snapshot['share_name'])
        owner = share.find()
        if owner is None:
            raise exception.ShareResourceNotFound(share_id=share.name)
        try:
            with self._places.managing(), self._places.work(home.name) as work:
                record = home.find() or self._take_over(
                    home,
                    work,
                    str(self._path_of(location)),
                    driver_options,
                    {
                        'size': owner['size'],
                        'of': share.directory(owner),
                        'share_proto': owner['share_proto'],
                    },
                )
                self._forget_before(home, record)
        except ValueError as error:
            raise exception.ManageInvalidShareSnapshot(
                reason=f'{location}: {error}'
            ) from error
        return {
            'size': record['size'],
            'provider_location': location,
            'export_locations': export_locations(home.data(record)),
        }

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Forget a snapshot. Who may use it may do so still."""
        self._places.snapshot(snapshot['name']).let_go()

    def _path_of(self, location: str) -> pathlib.Path:
        # An absolute path stays what it is.
        return (
            self._places.root
            / SNAPSHOTS
            / (location if location.startswith('/') else f'{location}/data')
        )

    def _take_over(
        self,
        home: LocalItem,
        work: pathlib.Path,
        path: str,
        driver_options: Mapping[str, str],
        expected: records.Record,
    ) -> records.Record:
        directory = self._places.directory_at(home.kind, path)
        known = expected
        for before in self._places.let_go(home.kind, directory):
            known = before.find_unmanaged() or expected
        for name in ('share_proto', 'of'):
            if known.get(name) != expected.get(name):
                raise ValueError(f'it is one of {known.get(name)}')
        used = trees.used_bytes(self._places.root / directory)
        record = expected | {
            'directory': directory,
            'size': managed_size(
                known['size'], used, driver_options.get('size')
            ),
        }
        home.publish(work, record)
        return record

    def _forget_before(self, home: LocalItem, record: records.Record) -> None:
        """Nobody else has a claim on it, and nobody is let in as before."""
        for before in self._places.let_go(home.kind, home.directory(record)):
            before.forget()


def export_locations(data: pathlib.Path) -> list[base.ExportLocation]:
    """Where the data of a share or snapshot is found, on this machine."""
    return [
        {
            'path': str(data),
            'is_admin_only': False,
            'metadata': {'preferred': 'True'},
        }
    ]
