"""Share types, their extra specs, and the projects of private ones."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareType(base.Base):
    __tablename__ = 'share_types'
    __table_args__ = base.table_args()

    id = mapped_column(base.Id, primary_key=True)
    name = mapped_column(base.Name, nullable=False, unique=True)
    description = mapped_column(base.Name)
    is_public = mapped_column(sa.Boolean, nullable=False, default=True)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class ShareTypeExtraSpec(base.Base):
    __tablename__ = 'share_type_extra_specs'
    __table_args__ = base.table_args()

    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id', ondelete='CASCADE'), primary_key=True
    )
    spec_key = mapped_column(base.Name, primary_key=True)
    spec_value = mapped_column(base.Name, nullable=False)


class ShareTypeProject(base.Base):
    __tablename__ = 'share_type_projects'
    __table_args__ = base.table_args()

    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id', ondelete='CASCADE'), primary_key=True
    )
    project_id = mapped_column(base.Name, primary_key=True)
