"""Share transfers: shares that are offered to other projects."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Transfer(base.Base):
    """An offer of a share, which the holder of its key may accept.

    Only a hash of the key is stored. The project and the user that accept,
    and what they asked for, are set while the back end carries it out. The
    offer is deleted with the share.
    """

    __tablename__ = 'transfers'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource_id', unique=True),
        sa.Index(None, 'status'),
        sa.Index(None, 'expires_at', 'id'),
        sa.Index(None, 'source_project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    )

    id = mapped_column(base.Id, primary_key=True)
    status = mapped_column(sa.String(16), nullable=False)
    resource_type = mapped_column(sa.String(36), nullable=False)
    resource_id = mapped_column(
        sa.ForeignKey('shares.id', ondelete='CASCADE'), nullable=False
    )
    display_name = mapped_column(base.Name)
    salt = mapped_column(base.Name, nullable=False)
    crypt_hash = mapped_column(base.Name, nullable=False)
    source_project_id = mapped_column(base.Name, nullable=False)
    destination_project_id = mapped_column(base.Name)
    destination_user_id = mapped_column(base.Name)
    clear_access_rules = mapped_column(sa.Boolean, nullable=False)
    expires_at = mapped_column(base.Timestamp, nullable=False)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
