"""The schema. Every table is reachable from `metadata`."""

from manila_lite.db.models import engine
from manila_lite.db.models import quotas
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.models import types
from manila_lite.db.models.base import Base

metadata = Base.metadata

__all__ = ['Base', 'engine', 'metadata', 'quotas', 'services', 'shares',
           'types']
