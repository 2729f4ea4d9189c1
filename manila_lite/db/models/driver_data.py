"""What drivers store about the resources that they manage."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base

MAX_KEY_LENGTH = 255
MAX_VALUE_LENGTH = 1023


class DriverPrivateData(base.Base):
    """One value of a driver; `entity_uuid` is any id the driver was given.

    The host is no part of the key: the driver of a replica reads what that
    of the active one has stored, and a share server may move to another
    back end.
    """

    __tablename__ = 'drivers_private_data'
    __table_args__ = base.table_args()

    entity_uuid = mapped_column(base.Id, primary_key=True)
    key = mapped_column(sa.String(MAX_KEY_LENGTH), primary_key=True)
    value = mapped_column(sa.String(MAX_VALUE_LENGTH), nullable=False)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
