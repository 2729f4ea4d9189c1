"""Methods that a driver leaves to its parts."""

from collections.abc import Callable
import contextlib
import functools
from typing import Concatenate, Generic, ParamSpec, TypeVar

D = TypeVar('D')
T = TypeVar('T')
P = ParamSpec('P')
R = TypeVar('R')


class Delegation(Generic[D, T]):
    """Driver methods that call those of one part, as in

        create_share = shares(LocalShares.create_share)

    They have the name and the documentation of the part's method. `before`
    is called with the driver at first, and may refuse the call; the method
    is called in the context that `around` returns. If it fails, and `mended`
    has done something about the error, all of it is done once more.
    """

    def __init__(
        self,
        part_of: Callable[[D], T],
        before: Callable[[D], object] = lambda driver: None,
        around: Callable[
            [D], contextlib.AbstractContextManager[object]
        ] = lambda driver: contextlib.nullcontext(),
        mended: Callable[[D, Exception], bool] = lambda driver, error: False,
    ):
        self._part_of = part_of
        self._before = before
        self._around = around
        self._mended = mended

    def __call__(
        self, method: Callable[Concatenate[T, P], R]
    ) -> Callable[Concatenate[D, P], R]:
        part_of, before, around = self._part_of, self._before, self._around

        def call_once(driver: D, *args: P.args, **kwargs: P.kwargs) -> R:
            before(driver)
            with around(driver):
                return method(part_of(driver), *args, **kwargs)

        @functools.wraps(method)
        def call(driver: D, *args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return call_once(driver, *args, **kwargs)
            except Exception as error:
                if not self._mended(driver, error):
                    raise
            return call_once(driver, *args, **kwargs)

        return call
