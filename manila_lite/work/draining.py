"""How a process that is to stop ends its work."""

import threading


class Draining:
    """What the running work of a process is asked to do.

    Once it has begun, work is handed on instead of its next step; once time
    is up, also by a copy that is in progress.
    """

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._time_is_up = threading.Event()

    def begin(self) -> None:
        self._begun.set()

    def end(self) -> None:
        self._begun.set()
        self._time_is_up.set()

    @property
    def has_begun(self) -> bool:
        return self._begun.is_set()

    @property
    def time_is_up(self) -> bool:
        return self._time_is_up.is_set()
