"""A driver that stores values about everything that it is called for."""

from manila_lite.share.drivers.dummy.driver import DummyDriver


class RememberingDriver(DummyDriver):
    """Stores the last method called by id, as drivers with records do.

    `applied` are the calls that have applied metadata of shares: the name
    of the share and the values.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.applied = []

    def _remember(self, method, *ids):
        for id in ids:
            self.private_storage.update(id, {'last_call': method})

    def create_share(self, context, share, share_server=None):
        self._remember('create_share', share['id'], share['share_id'])
        if share_server:
            self._remember('create_share', share_server['id'])
        return super().create_share(context, share, share_server)

    def extend_share(self, share, new_size, share_server=None):
        super().extend_share(share, new_size, share_server)
        self._remember('extend_share', share['id'])

    def update_share_from_metadata(self, context, share, metadata, share_server=None):
        if 'unknown' in metadata.values():
            raise ValueError(metadata)
        self.applied.append((share['id'], metadata))

    def create_snapshot(self, context, snapshot, share_server=None):
        self._remember('create_snapshot', snapshot['id'])
        self._remember('create_snapshot', snapshot['snapshot_id'])
        return super().create_snapshot(context, snapshot, share_server)

    def create_replica(
        self,
        context,
        replica_list,
        new_replica,
        access_rules,
        replica_snapshots,
        share_server=None,
    ):
        active = next(one for one in replica_list if one['replica_state'] == 'active')
        source = self.private_storage.get(active['id'], 'last_call')
        self.private_storage.update(
            new_replica['id'], {'last_call': f'replicated {source}'}
        )
        return super().create_replica(
            context,
            replica_list,
            new_replica,
            access_rules,
            replica_snapshots,
            share_server,
        )
