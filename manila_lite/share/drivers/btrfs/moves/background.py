"""Calls that go on in a thread while other calls of the driver return."""

from collections.abc import Callable
import concurrent.futures
import threading


class BackgroundCall:
    """A call in a thread, which ends with the process at the latest."""

    def __init__(self, function: Callable[[], None]):
        self._function = function
        self._future: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Unlike those of an executor, it does not keep the process alive.
        threading.Thread(target=self._run, daemon=True).start()

    def has_ended(self, timeout: float) -> bool:
        """Wait at most so many seconds; raise the error it has ended with."""
        try:
            self._future.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._future.done():  # it is the error of the call
                raise
            return False
        return True

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 (has_ended raises it)
            self._future.set_exception(error)
        else:
            self._future.set_result(None)
