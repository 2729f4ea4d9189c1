"""Methods that a driver leaves to its parts."""

import abc
from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import inspect
import operator
from typing import Any, Generic, TypeVar

from manila_lite.share.drivers.contract.interfaces import Arguments

D = TypeVar('D')


class Delegation(Generic[D]):
    """How a driver calls methods of its parts, as in

        @admitted('shares', 'snapshots')
        @removing('shares.delete_share')
        class LocalDriver(base.ShareDriver, base.CreateFromSnapshotSupport):
            shares: LocalShares
            snapshots: LocalSnapshots

    The driver has all public methods of these parts, or the one named, that
    its interfaces declare and that it does not define itself. The interface
    says once how a method is called. That of the part names only those
    parameters that it uses and is given them by name, or several of them as one
    value: see `Arguments`.

    `before` is called with the driver at first, and may refuse the call; the
    method is called in the context that `around` returns. If it fails, and
    `mended` has done something about the error, all of it is done once more.
    """

    def __init__(
        self,
        before: Callable[[D], object] = lambda driver: None,
        around: Callable[
            [D], contextlib.AbstractContextManager[object]
        ] = lambda driver: contextlib.nullcontext(),
        mended: Callable[[D, Exception], bool] = lambda driver, error: False,
    ):
        self._before, self._around, self._mended = before, around, mended

    def __call__(self, *parts: str) -> Callable[[type[D]], type[D]]:
        def declared(driver: type[D]) -> type[D]:
            classes = inspect.get_annotations(driver)
            for path in parts:
                part, _, named = path.partition('.')
                for name in [named] if named else _public_methods(classes[part]):
                    if name in vars(driver) or not (named or hasattr(driver, name)):
                        continue
                    method = getattr(classes[part], name)
                    setattr(
                        driver, name, self.method(part, method, getattr(driver, name))
                    )
            return abc.update_abstractmethods(driver)

        return declared

    def method(
        self, part: str, method: Callable[..., Any], declared: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return the declared method of a driver, which calls one of a part."""
        signature = inspect.signature(declared)
        _, *used = inspect.signature(method).parameters.values()
        getters = {one.name: _getter(one) for one in used}
        needed = set().union(*map(_needed, used))
        unknown = needed - set(signature.parameters)
        if unknown:
            raise TypeError(
                f'{method.__qualname__} has parameters that {declared.__qualname__} '
                f'does not declare: {", ".join(sorted(unknown))}'
            )

        def call_once(driver: D, arguments: dict[str, Any]) -> Any:
            self._before(driver)
            with self._around(driver):
                return method(getattr(driver, part), **arguments)

        # Not its attributes: one of them says that it is abstract.
        @functools.wraps(declared, updated=())
        def call(driver: D, *args: object, **kwargs: object) -> Any:
            bound = signature.bind(driver, *args, **kwargs)
            bound.apply_defaults()
            arguments = {name: get(bound.arguments) for name, get in getters.items()}
            try:
                return call_once(driver, arguments)
            except Exception as error:
                if not self._mended(driver, error):
                    raise
            return call_once(driver, arguments)

        call.__doc__ = method.__doc__ or declared.__doc__
        return call


def _getter(parameter: inspect.Parameter) -> Callable[[Mapping[str, Any]], Any]:
    """Return what finds a parameter of a part among the arguments of a call."""
    value = _value_type(parameter)
    return value.of if value else operator.itemgetter(parameter.name)


def _needed(parameter: inspect.Parameter) -> set[str]:
    """Return the arguments that a parameter of a part is made of."""
    value = _value_type(parameter)
    return value.required() if value else {parameter.name}


def _value_type(parameter: inspect.Parameter) -> type[Arguments] | None:
    found = parameter.annotation
    return found if isinstance(found, type) and issubclass(found, Arguments) else None


def _public_methods(part: type) -> Iterator[str]:
    for name, _ in inspect.getmembers(part, inspect.isfunction):
        if not name.startswith('_'):
            yield name
