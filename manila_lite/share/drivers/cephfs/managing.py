"""Managing and unmanaging existing subvolumes and their snapshots."""

from collections.abc import Mapping
import re

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import (
    CephfsBackend,
    State,
    owner_key,
    quota_gib,
    refuse_reverting,
    require,
)
from manila_lite.share.drivers.cephfs.records import SHARE, SNAPSHOT, Record, Values
from manila_lite.share.drivers.cephfs.snapshots import is_there, location_of
from manila_lite.share.drivers.space import managed_size

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*')


class CephfsManaging:
    """Nothing is moved or renamed: subvolumes are used as they are."""

    def __init__(self, backend: CephfsBackend):
        self._backend = backend

    def manage_existing(
        self, share: base.ShareForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageReply:
        """Manage a subvolume of the group of the back end.

        It is given by its export location, with or without the addresses.
        Its size is the option `size` in GiB, or else its quota.
        """
        location = share['export_location'] or ''
        try:
            record = self._manage(share, location, driver_options.get('size'))
        except ValueError as error:
            raise exception.ManageInvalidShare(reason=f'{location}: {error}') from error
        return {
            'size': record['size'],
            'export_locations': self._backend.export_locations(
                share['share_proto'], record['path']
            ),
        }

    def _manage(
        self, share: base.ShareForDriver, location: str, requested: str | None
    ) -> Record:
        protocols = self._backend.protocols
        if share['share_proto'].upper() not in protocols:
            raise ValueError(f'it can be a share of {" or ".join(protocols)} only')
        path = location[location.find(':/') + 1 :] if ':/' in location else location
        subvolume = self._subvolume_at(path)
        info = self._backend.get_info(share['id'], subvolume)
        quota = quota_gib(info)
        size = managed_size(quota or 0, info['bytes_used'], requested)
        new = {
            'state': State.AVAILABLE,
            'subvolume': subvolume,
            'size': size,
            'path': path,
        }
        earlier = self._earlier(SHARE, share['name'], new)
        record = self._own(SHARE, share['name'], new, earlier)
        if record['size'] != quota:
            self._backend.resize(subvolume, record['size'])
        return record

    def _subvolume_at(self, path: str) -> str:
        """Return the name of the subvolume with this path."""
        top, _, rest = path.removeprefix('/').partition('/')
        group, _, rest = rest.partition('/')
        name = rest.partition('/')[0]
        if top != 'volumes' or group != self._backend.group:
            raise ValueError(
                'it is not the path of a subvolume of the group '
                f'{self._backend.group}, which begins with '
                f'/volumes/{self._backend.group}/'
            )
        if not _NAME.fullmatch(name) or self._backend.find_path(name) != path:
            raise ValueError('there is no subvolume with this path')
        return name

    def _earlier(self, kind: str, name: str, new: Record) -> dict[str, Record]:
        """Return the records of former owners of a subvolume or snapshot."""
        return {
            kind + other: record
            for other, record in self._backend.records.get_all(kind).items()
            if _owned(record) == _owned(new) and other != name
        }

    def _own(
        self, kind: str, name: str, new: Record, earlier: Mapping[str, Record]
    ) -> Record:
        """Record something that nothing else owns, in place of earlier records."""
        key, owner = kind + name, _owned(new)

        def decide(values: Values) -> Values:
            if values[owner] == name:
                return {}
            if values[owner] is not None:
                raise ValueError('it is managed already')
            if values[key] is not None and values[key]['state'] != State.UNMANAGED:
                raise ValueError('the resource has another one')
            return {**dict.fromkeys(earlier), owner: name, key: new}

        return self._backend.records.change(key, owner, *earlier, decide=decide)[key]

    def unmanage(self, share: base.ShareForDriver) -> None:
        """Stop managing a share; its clients keep their access."""
        if not self._release(SHARE + share['name']):
            raise exception.ShareResourceNotFound(share_id=share['id'])

    def _release(self, key: str) -> bool:
        """Stop managing something; return whether it is known."""
        record = self._backend.records.get(key)
        if record is None:
            return False
        owner = _owned(record)

        def decide(values: Values) -> Values:
            present = values[key]
            if present is None or present['state'] == State.UNMANAGED:
                return {}
            # Managed again, it would be available.
            refuse_reverting(key.partition(':')[2], present)
            return {key: present | {'state': State.UNMANAGED}, owner: None}

        return self._backend.records.change(key, owner, decide=decide)[key] is not None

    def manage_existing_snapshot(
        self, snapshot: base.SnapshotForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageSnapshotReply:
        """Manage a snapshot of the share's subvolume.

        The provider location is its name in Ceph, which may follow that of
        the subvolume and "@".
        """
        location = snapshot['provider_location'] or ''
        share = require(
            snapshot['share_id'],
            self._backend.records.get(SHARE + snapshot['share_name']),
        )
        subvolume, _, name = location.rpartition('@')
        try:
            if subvolume not in ('', share['subvolume']):
                raise ValueError('it is one of another share')
            if not _NAME.fullmatch(name) or not is_there(
                self._backend, share['subvolume'], name
            ):
                raise ValueError('the share has no such snapshot')
            record = self._manage_snapshot(
                snapshot, share, name, driver_options.get('size')
            )
        except ValueError as error:
            raise exception.ManageInvalidShareSnapshot(
                reason=f'{location}: {error}'
            ) from error
        return {'size': record['size'], 'provider_location': location_of(record)}

    def _manage_snapshot(
        self,
        snapshot: base.SnapshotForDriver,
        share: Record,
        name: str,
        requested: str | None,
    ) -> Record:
        new = {
            'state': State.AVAILABLE,
            'subvolume': share['subvolume'],
            'snapshot': name,
        }
        earlier = self._earlier(SNAPSHOT, snapshot['name'], new)
        known = next(iter(earlier.values()), share)
        new['size'] = managed_size(known['size'], 0, requested)
        return self._own(SNAPSHOT, snapshot['name'], new, earlier)

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Stop managing a snapshot; one that is unknown is success."""
        self._release(SNAPSHOT + snapshot['name'])


def _owned(record: Record) -> str:
    """Return the key of what a share or snapshot owns."""
    return owner_key(record['subvolume'], record.get('snapshot', ''))
