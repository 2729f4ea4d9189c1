"""A driver that keeps what its methods were called with."""

import functools
import inspect

from manila_lite.share.drivers.dummy.driver import DummyDriver


class RecordingDriver(DummyDriver):
    """`recorded` are the names of methods with their arguments by name."""

    def __init__(self, *args, **kwargs):
        self.recorded = []
        super().__init__(*args, **kwargs)

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name.startswith('_') or not inspect.ismethod(found):
            return found

        @functools.wraps(found)
        def call(*args, **kwargs):
            given = inspect.signature(found).bind(*args, **kwargs).arguments
            self.recorded.append((name, given))
            return found(*args, **kwargs)

        return call
