"""A driver that blocks its thread, as one does that copies a large file."""

import fcntl
import logging
import pathlib
import typing

from manila_lite.context import RequestContext
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.dummy.driver import DummyDriver

LOG = logging.getLogger(__name__)

NAME = f'{__name__}.BlockingDriver'


def lock_file(state_dir: pathlib.Path) -> pathlib.Path:
    """Return the file that `create_share` waits for while it is locked."""
    return state_dir / 'lock'


class BlockingDriver(DummyDriver):
    """`dummy`, but shares are created while no other process holds a lock.

    The wait is one of the kernel, so that no greenlet can run meanwhile.
    """

    def create_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        *args: typing.Any,
        **kwargs: typing.Any,
    ) -> typing.Any:
        state = pathlib.Path(self.configuration.dummy_driver_state_path)
        with lock_file(state).open('w') as file:
            LOG.info('Waiting for the lock to create %s', share['id'])
            fcntl.flock(file, fcntl.LOCK_EX)
        self.private_storage.update(share['id'], {'waited': 'True'})
        return super().create_share(context, share, *args, **kwargs)
