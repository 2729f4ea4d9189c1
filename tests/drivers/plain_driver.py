"""The least that a driver has to implement."""

from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.configuration import Configuration


class PlainDriver(base.ShareDriver):
    """A minimal driver."""

    def __init__(self, *args, **kwargs):
        super().__init__([True, False], *args, **kwargs)

    def create_share(self, context, share, share_server=None):
        return 'path'

    def delete_share(self, context, share, share_server=None):
        return None


def configuration(**values):
    return Configuration.from_values(
        {'driver_handles_share_servers': False, **values}, group='section'
    )
