"""QoS types and their specs."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class QosType(base.Base):
    """A profile of quality of service that administrators define."""

    __tablename__ = 'qos_types'
    __table_args__ = base.table_args(sa.Index(None, 'created_at', 'id'))

    id = mapped_column(base.Id, primary_key=True)
    name = mapped_column(base.Name, nullable=False, unique=True)
    description = mapped_column(base.Name)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class QosTypeSpec(base.Base):
    __tablename__ = 'qos_type_specs'
    __table_args__ = base.table_args()

    qos_type_id = mapped_column(
        sa.ForeignKey('qos_types.id', ondelete='CASCADE'), primary_key=True
    )
    spec_key = mapped_column(base.Name, primary_key=True)
    spec_value = mapped_column(base.Name, nullable=False)
