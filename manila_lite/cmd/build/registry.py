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

    def get(self, kind: type[Built], **given: object) -> Built:
        """Return the object of a class, which is built when first asked for."""
        if kind in self._unshared:
            return self._build(kind, given)
        if kind not in self._objects:
            self._objects[kind] = self._build(kind, given)
        return typing.cast(Built, self._objects[kind])

    def _build(self, kind: type[Built], given: Mapping[str, typing.Any]) -> Built:
        parameters = _parameters(typing.cast(Hashable, kind))
        unknown = given.keys() - parameters.keys()
        if unknown:
            raise TypeError(f'{kind.__name__} takes no {sorted(unknown)}')
        values: dict[str, typing.Any] = {}
        for name, parameter in parameters.items():
            if name in given:
                values[name] = given[name]
            elif parameter.option is not None:
                values[name] = parameter.option.read(self._process.conf)
            elif parameter.contract is not None:
                values[name] = self._process.client(parameter.contract)
            elif parameter.hint in self._objects:
                values[name] = self._objects[parameter.hint]
            elif parameter.has_default:
                continue
            elif parameter.is_built:
                values[name] = self.get(parameter.hint)
            else:
                raise TypeError(f'nothing is given as {name} of {kind.__name__}')
        return kind(**values)


class _Parameter(typing.NamedTuple):
    """What a parameter of a constructor wants."""

    hint: typing.Any
    option: Option | None
    contract: typing.Any
    has_default: bool
    is_built: bool


@functools.cache
def _parameters(kind: typing.Any) -> Mapping[str, _Parameter]:
    """Return what the parameters of a class want, by their names.

    Reading it takes longer than the constructor does, and each back end has
    an object of most classes.
    """
    hints = typing.get_type_hints(kind.__init__, include_extras=True)
    return {
        name: _Parameter(
            hint := hints.get(name),
            _option_in(hint),
            typing.get_args(hint)[0] if typing.get_origin(hint) is Client else None,
            found.default is not found.empty,
            inspect.isclass(hint) and hint.__module__ != 'builtins',
        )
        for name, found in inspect.signature(kind).parameters.items()
    }


def _option_in(hint: object) -> Option | None:
    """Return the option in an annotation."""
    found = getattr(hint, '__metadata__', ())
    return next((one for one in found if isinstance(one, Option)), None)
