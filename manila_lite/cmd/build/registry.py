"""Build objects from the annotations of their constructors."""

from collections.abc import Collection, Hashable, Mapping
import functools
import inspect
import typing

from oslo_config import cfg

from manila_lite.cmd.build.process import Process
from manila_lite.conf import Option
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.session import Database
from manila_lite.quota.limits import DefaultLimits
from manila_lite.rpc.contract import Client
from manila_lite.work.admission import AdmissionControl

Built = typing.TypeVar('Built')


class Registry:
    """The objects of one process, or of one of its back ends, by class.

    A parameter gets what is `given` by its name, else the option or the
    client of a contract in its annotation, else the object of that class.
    What does not exist yet is built, unless the parameter has a default.
    Objects of `unshared` classes are built for each parameter.
    """

    def __init__(
        self,
        process: Process,
        objects: Mapping[typing.Any, object] | None = None,
        unshared: Collection[type] = (),
    ):
        self._process = process
        self._unshared = unshared
        self._objects: dict[typing.Any, object] = {
            Process: process,
            cfg.ConfigOpts: process.conf,
            Database: process.db,
            DefaultLimits: process.limits(),
            AdmissionControl: process.admission,
            Coordinator | NullCoordinator: process.locks,
            **(objects or {}),
        }

    def get(self, kind: type[Built], **given: typing.Any) -> Built:
        """Return the object of a class, which is built when first asked for."""
        if kind in self._unshared:
            return self._build(kind, given)
        if kind not in self._objects:
            self._objects[kind] = self._build(kind, given)
        return typing.cast(Built, self._objects[kind])

    def _build(self, kind: type[Built], given: Mapping[str, typing.Any]) -> Built:
        parameters, hints = _constructor(typing.cast(Hashable, kind))
        unknown = given.keys() - parameters.keys()
        if unknown:
            raise TypeError(f'{kind.__name__} takes no {sorted(unknown)}')
        values: dict[str, typing.Any] = {}
        for name, parameter in parameters.items():
            hint = hints.get(name)
            if name in given:
                values[name] = given[name]
            elif isinstance(option := _option_in(hint), Option):
                values[name] = option.read(self._process.conf)
            elif typing.get_origin(hint) is Client:
                values[name] = self._process.client(typing.get_args(hint)[0])
            elif hint in self._objects:
                values[name] = self._objects[hint]
            elif parameter.default is not parameter.empty:
                continue
            elif inspect.isclass(hint) and hint.__module__ != 'builtins':
                values[name] = self.get(hint)
            else:
                raise TypeError(f'nothing is given as {name} of {kind.__name__}')
        return kind(**values)


@functools.cache
def _constructor(
    kind: typing.Any,
) -> tuple[Mapping[str, inspect.Parameter], Mapping[str, typing.Any]]:
    """Return the parameters of a class, and their annotations.

    Reading them takes longer than the constructor does, and each back end has
    an object of most classes.
    """
    return (
        inspect.signature(kind).parameters,
        typing.get_type_hints(kind.__init__, include_extras=True),
    )


def _option_in(hint: typing.Any) -> Option | None:
    """Return the option in an annotation."""
    found = getattr(hint, '__metadata__', ())
    return next((one for one in found if isinstance(one, Option)), None)
