"""Where users and administrators find shares and snapshots."""

from manila_lite.share.drivers import base, records

ADDRESS = '10.0.0.10'
ADMIN_ADDRESS = '10.0.0.20'


def share_exports(record: records.Record) -> list[base.ExportLocation]:
    """Return the export locations of a share."""
    return _export_locations(record, 'shares')


def snapshot_exports(record: records.Record) -> list[base.ExportLocation]:
    """Return the export locations of a snapshot."""
    return _export_locations(record, 'snapshots')


def _export_locations(record: records.Record, folder: str) -> list[base.ExportLocation]:
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
