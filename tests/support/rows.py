"""What rows need that tests insert themselves."""

import sqlalchemy as sa

from manila_lite.db.models import shares

SHARE_FLAGS = {
    column.name: False
    for column in shares.Share.__table__.c
    if isinstance(column.type, sa.Boolean)
}
"""All flags of a share, which must have a value."""
