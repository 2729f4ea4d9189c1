"""Share group types, their specs, and the projects of private ones."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareGroupType(base.Base):
    __tablename__ = 'share_group_types'
    __table_args__ = base.table_args()

    id = mapped_column(base.Id, primary_key=True)
    name = mapped_column(base.Name, nullable=False, unique=True)
    is_public = mapped_column(sa.Boolean, nullable=False, default=True)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class ShareGroupTypeShareType(base.Base):
    """A share type that the shares of such a group may have."""

    __tablename__ = 'share_group_type_share_type_mappings'
    __table_args__ = base.table_args()

    share_group_type_id = mapped_column(
        sa.ForeignKey('share_group_types.id', ondelete='CASCADE'), primary_key=True
    )
    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id'), primary_key=True, index=True
    )


class ShareGroupTypeSpec(base.Base):
    __tablename__ = 'share_group_type_specs'
    __table_args__ = base.table_args()

    share_group_type_id = mapped_column(
        sa.ForeignKey('share_group_types.id', ondelete='CASCADE'), primary_key=True
    )
    spec_key = mapped_column(base.Name, primary_key=True)
    spec_value = mapped_column(base.Name, nullable=False)


class ShareGroupTypeProject(base.Base):
    __tablename__ = 'share_group_type_projects'
    __table_args__ = base.table_args()

    share_group_type_id = mapped_column(
        sa.ForeignKey('share_group_types.id', ondelete='CASCADE'), primary_key=True
    )
    project_id = mapped_column(base.Name, primary_key=True)
