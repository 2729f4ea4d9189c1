"""Samples of figures over time, for charts."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Sample(base.Base):
    """What was measured of a source in a slot of time.

    A slot has the number of its beginning, in units of `resolution` seconds.
    `source` is a pool, or empty for the whole cloud. The key lets one of the
    processes that measure the same slot write it.
    """

    __tablename__ = 'samples'
    __table_args__ = base.table_args(sa.Index(None, 'resolution', 'slot'))

    source = mapped_column(base.Name, primary_key=True)
    resolution = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    slot = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    figures = mapped_column(base.Document, nullable=False)
