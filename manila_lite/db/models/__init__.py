"""The schema. `metadata` contains every table."""

from manila_lite.db.models import (
    access,
    engine,
    migrations,
    networks,
    quotas,
    services,
    share_groups,
    share_servers,
    shares,
    snapshots,
    types,
)
from manila_lite.db.models.base import Base

metadata = Base.metadata

__all__ = [
    'Base',
    'access',
    'engine',
    'locks',
    'metadata',
    'networks',
    'quotas',
    'services',
    'share_backups',
    'share_groups',
    'migrations',
    'share_servers',
    'shares',
    'snapshots',
    'transfers',
    'types',
]
