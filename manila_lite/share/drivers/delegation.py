"""Methods that a driver leaves to its parts."""

import abc
from collections.abc import Callable
import contextlib
import functools
import inspect
from typing import Concatenate, Generic, ParamSpec, TypeVar

D = TypeVar('D')
T = TypeVar('T')
P = ParamSpec('P')
R = TypeVar('R')


class Delegation(Generic[D]):
    """How a driver calls methods of its parts, as in

        @admitted('shares', 'snapshots')
        class LocalDriver(base.ShareDriver, base.CreateFromSnapshotSupport):
            shares: LocalShares
            snapshots: LocalSnapshots

            delete_share = removing.method('shares', LocalShares.delete_share)

    The driver has all methods of these parts that its interfaces declare and
    that it does not define itself. They have the name and the documentation
    of the part's method. `before` is called with the driver at first, and may
    refuse the call; the method is called in the context that `around`
    returns. If it fails, and `mended` has done something about the error, all
    of it is done once more.
    """

    def __init__(
        self,
        before: Callable[[D], object] = lambda driver: None,
        around: Callable[
            [D], contextlib.AbstractContextManager[object]
        ] = lambda driver: contextlib.nullcontext(),
        mended: Callable[[D, Exception], bool] = lambda driver, error: False,
    ):
        self._before = before
        self._around = around
        self._mended = mended

    def __call__(self, *parts: str) -> Callable[[type[D]], type[D]]:
        def declared(driver: type[D]) -> type[D]:
            classes = inspect.get_annotations(driver)
            for part in parts:
                for name, method in inspect.getmembers(
                    classes[part], inspect.isfunction
                ):
                    if (
                        not name.startswith('_')
                        and hasattr(driver, name)
                        and name not in vars(driver)
                    ):
                        setattr(driver, name, self.method(part, method))
            return abc.update_abstractmethods(driver)

        return declared

    def method(
        self, part: str, method: Callable[Concatenate[T, P], R]
    ) -> Callable[Concatenate[D, P], R]:
        """Return a method of the driver that calls one of a part."""

        def call_once(driver: D, *args: P.args, **kwargs: P.kwargs) -> R:
            self._before(driver)
            with self._around(driver):
                return method(getattr(driver, part), *args, **kwargs)

        @functools.wraps(method)
        def call(driver: D, *args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return call_once(driver, *args, **kwargs)
            except Exception as error:
                if not self._mended(driver, error):
                    raise
            return call_once(driver, *args, **kwargs)

        return call
