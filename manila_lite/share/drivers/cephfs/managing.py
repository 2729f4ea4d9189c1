"""Managing and unmanaging existing subvolumes and their snapshots."""

from collections.abc import Iterable, Mapping
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
        record = self._take(share, subvolume, path, size)
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

    def _take(
        self, share: base.ShareForDriver, subvolume: str, path: str, size: int
    ) -> Record:
        """Make a share the owner of a subvolume, unless another one owns it."""
        key, owner = SHARE + share['name'], owner_key(subvolume)
        # The records of its former owners.
        earlier = [
            SHARE + name
            for name, record in self._backend.records.get_all(SHARE).items()
            if record['subvolume'] == subvolume and SHARE + name != key
        ]
        new = {
            'state': State.AVAILABLE,
            'subvolume': subvolume,
            'size': size,
            'path': path,
        }
        return self._own(share['name'], key, owner, earlier, new)

    def _own(
        self, name: str, key: str, owner: str, earlier: Iterable[str], new: Record
    ) -> Record:
        """Record something that nothing else owns, in place of earlier records."""

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
        key = SHARE + share['name']
        record = self._backend.records.get(key)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share['id'])
        owner = owner_key(record['subvolume'])

        def decide(values: Values) -> Values:
            present = values[key]
            if present is not None and present['state'] == State.UNMANAGED:
                return {}
            present = require(share['id'], present)
            # Managed again, it would be an available share.
            refuse_reverting(share['name'], present)
            return {key: present | {'state': State.UNMANAGED}, owner: None}

        self._backend.records.change(key, owner, decide=decide)

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
            requested = driver_options.get('size')
            record = self._take_snapshot(snapshot, share, name, requested)
        except ValueError as error:
            raise exception.ManageInvalidShareSnapshot(
                reason=f'{location}: {error}'
            ) from error
        return {'size': record['size'], 'provider_location': location_of(record)}

    def _take_snapshot(
        self,
        snapshot: base.SnapshotForDriver,
        share: Record,
        name: str,
        requested: str | None,
    ) -> Record:
        """Own a snapshot of Ceph, unless another snapshot of ours does."""
        key = SNAPSHOT + snapshot['name']
        owner = owner_key(share['subvolume'], name)
        earlier = {
            SNAPSHOT + other: record
            for other, record in self._backend.records.get_all(SNAPSHOT).items()
            if (record['subvolume'], record['snapshot']) == (share['subvolume'], name)
            and SNAPSHOT + other != key
        }
        known = next(iter(earlier.values()), share)
        new = {
            'state': State.AVAILABLE,
            'subvolume': share['subvolume'],
            'snapshot': name,
            'size': managed_size(known['size'], 0, requested),
        }
        return self._own(snapshot['name'], key, owner, earlier, new)

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Stop managing a snapshot; one that is unknown is success."""
        key = SNAPSHOT + snapshot['name']
        record = self._backend.records.get(key)
        if record is None:
            return
        owner = owner_key(record['subvolume'], record['snapshot'])

        def decide(values: Values) -> Values:
            present = values[key]
            if present is None or present['state'] == State.UNMANAGED:
                return {}
            return {key: present | {'state': State.UNMANAGED}, owner: None}

        self._backend.records.change(key, owner, decide=decide)
