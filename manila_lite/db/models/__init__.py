"""The schema. `metadata` contains every table."""

from manila_lite.db.models import access
from manila_lite.db.models import cluster_tasks
from manila_lite.db.models import driver_calls
from manila_lite.db.models import driver_data
from manila_lite.db.models import encryption_keys
from manila_lite.db.models import engine
from manila_lite.db.models import group_types
from manila_lite.db.models import locks
from manila_lite.db.models import networks
from manila_lite.db.models import qos_types
from manila_lite.db.models import quotas
from manila_lite.db.models import recovery
from manila_lite.db.models import server_migrations
from manila_lite.db.models import services
from manila_lite.db.models import share_backups
from manila_lite.db.models import share_groups
from manila_lite.db.models import share_migrations
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.models import transfers
from manila_lite.db.models import types
from manila_lite.db.models.base import Base

metadata = Base.metadata

__all__ = [
    'Base',
    'access',
    'cluster_tasks',
    'driver_calls',
    'driver_data',
    'encryption_keys',
    'engine',
    'group_types',
    'locks',
    'metadata',
    'networks',
    'qos_types',
    'quotas',
    'recovery',
    'server_migrations',
    'services',
    'share_backups',
    'share_groups',
    'share_migrations',
    'share_servers',
    'shares',
    'snapshots',
    'transfers',
    'types',
]
