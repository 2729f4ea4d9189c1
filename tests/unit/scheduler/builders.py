"""Build pools and requests with defaults that a test may override."""

from manila_lite.scheduler.pools import Capabilities, Pool
from manila_lite.scheduler.request import PlacementRequest

CAPABILITIES = {
    'share_backend_name': 'gold',
    'storage_protocol': 'NFS_CIFS',
    'driver_handles_share_servers': False,
    'snapshot_support': True,
}


def pool(host='alpha@gold#one', capabilities=(), **values):
    defaults = {
        'zone': 'nova',
        'service_up': True,
        'service_enabled': True,
        'total_gb': 100,
        'free_gb': 100,
        'allocated_gb': 0,
        'pending_gb': 0,
    }
    return Pool(
        host=host,
        capabilities=Capabilities(CAPABILITIES | dict(capabilities)),
        **{**defaults, **values},
    )


def request(**values):
    return PlacementRequest(**{'size': 1, 'share_proto': 'NFS', **values})
