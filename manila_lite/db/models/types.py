"""Share types, group types and QoS types."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ShareType(base.Record):
    __tablename__ = 'share_types'

    name = mapped_column(base.Name, nullable=False, unique=True)
    description = mapped_column(base.Name)
    is_public = mapped_column(sa.Boolean, nullable=False, default=True)


class ShareTypeExtraSpec(base.Spec):
    __tablename__ = 'share_type_extra_specs'

    share_type_id = base.part_of('share_types', primary_key=True)


class ShareTypeProject(base.Base):
    __tablename__ = 'share_type_projects'

    share_type_id = base.part_of('share_types', primary_key=True)
    project_id = mapped_column(base.Name, primary_key=True)


class ShareGroupType(base.Record):
    __tablename__ = 'share_group_types'

    name = mapped_column(base.Name, nullable=False, unique=True)
    is_public = mapped_column(sa.Boolean, nullable=False, default=True)


class ShareGroupTypeShareType(base.Base):
    """A share type that the shares of such a group may have."""

    __tablename__ = 'share_group_type_share_type_mappings'

    share_group_type_id = base.part_of('share_group_types', primary_key=True)
    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id'), primary_key=True, index=True
    )


class ShareGroupTypeSpec(base.Spec):
    __tablename__ = 'share_group_type_specs'

    share_group_type_id = base.part_of('share_group_types', primary_key=True)


class ShareGroupTypeProject(base.Base):
    __tablename__ = 'share_group_type_projects'

    share_group_type_id = base.part_of('share_group_types', primary_key=True)
    project_id = mapped_column(base.Name, primary_key=True)


class QosType(base.Record):
    """A profile of quality of service that administrators define."""

    __tablename__ = 'qos_types'
    __table_args__ = base.table_args(sa.Index(None, 'created_at', 'id'))

    name = mapped_column(base.Name, nullable=False, unique=True)
    description = mapped_column(base.Name)


class QosTypeSpec(base.Spec):
    __tablename__ = 'qos_type_specs'

    qos_type_id = base.part_of('qos_types', primary_key=True)
