"""A driver that creates each share of a group from a snapshot by itself."""

from manila_lite.share.drivers.contract.groups import ShareGroupDefaults
from manila_lite.share.drivers.dummy.driver import DummyDriver


class SingleCopiesDriver(DummyDriver):
    """The dummy driver without the method for all of them."""

    create_share_group_from_share_group_snapshot = (
        ShareGroupDefaults.create_share_group_from_share_group_snapshot
    )
