"""How a contract is declared, asked and kept.

A contract says once what one service asks of another. Clients are made
from it and endpoints are checked against it when they are imported, so
that a method cannot be asked for in one way and answered in another.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import inspect
import re
import typing

from manila_lite import context
from manila_lite.rpc import transport as rpc_transport

Args = dict[str, typing.Any]
Stub = typing.TypeVar('Stub', bound=Callable[..., typing.Any])
Endpoint = typing.TypeVar('Endpoint', bound=type)

RESOURCE = 'instance_id'


class Machine(typing.Protocol):
    """What a declared failure needs of a state table."""

    @property
    def resource(self) -> str: ...

    def __getitem__(self, event: str, /) -> object: ...


@dataclasses.dataclass(frozen=True)
class Failure:
    """What is fired when work has failed, and what the user is told."""

    machine: Machine
    event: str
    action: typing.Any = None
    detail: typing.Any = None


Refused = Mapping[type[Exception], tuple[str, typing.Any]]
"""An event of its own, and a detail, for some errors."""


@dataclasses.dataclass(frozen=True, eq=False)
class Method:
    """One method of a contract: its arguments after `ctx`, in order.

    `defaults` has the values of those that may be left out.
    """

    topic: str
    kind: str
    method: str
    args: tuple[str, ...]
    defaults: Mapping[str, typing.Any]

    def complete(self, given: Args) -> Args:
        """The arguments with defaults filled in; TypeError: do not fit."""
        values = {**self.defaults, **given}
        if values.keys() != set(self.args):
            raise TypeError(
                f'{self.kind} takes {list(self.args)}, '
                f'given were {sorted(given)}'
            )
        return values


@dataclasses.dataclass(frozen=True, eq=False)
class Durable(Method):
    """A method that is stored as work and run by whoever claims it.

    `resource` names the argument with the id of what is worked on.
    Requests that agree in the argument `one_per` are run as one. Work
    that is `repeatable` may be run again after its holder is gone.
    """

    failures: tuple[tuple[type[Exception], Failure], ...]
    one_per: str | None
    resource: str
    repeatable: bool

    @property
    def failure(self) -> Failure | None:
        """What is fired in general; None when nothing is to be fired."""
        return self.failures[-1][1] if self.failures else None

    def failure_of(self, error: Exception) -> Failure | None:
        """What this error fires."""
        for kind, failure in self.failures:
            if isinstance(error, kind):
                return failure
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class Call(Method):
    """A method that answers at once, within `timeout` seconds."""

    timeout: float


def durable(
    *,
    failure: tuple[Machine, str] | None = None,
    action: typing.Any = None,
    detail: typing.Any = None,
    refused: Refused | None = None,
    one_per: str | None = None,
    resource: str = RESOURCE,
    repeatable: bool = False,
) -> Callable[[Stub], Stub]:
    """Declare a stub to be work; it is stored with what asked for it.

    `failure` is the move to make when the work has failed for good,
    `refused` has other moves for certain errors. `action` and `detail`
    name what the user's message is about.
    """
    failures: list[tuple[type[Exception], Failure]] = []
    if failure is not None:
        machine, event = failure
        events = {**(refused or {}), Exception: (event, detail)}
        failures = [
            (error, _failure(machine, event, action, detail))
            for error, (event, detail) in events.items()
        ]
    elif refused:
        raise TypeError('refused errors need a failure for the others')
    return _declare(
        Durable,
        failures=tuple(failures),
        one_per=one_per,
        resource=resource,
        repeatable=repeatable,
    )


def _failure(
    machine: Machine, event: str, action: typing.Any, detail: typing.Any
) -> Failure:
    try:
        machine[event]
    except KeyError:
        raise TypeError(
            f'{machine.resource} has no move {event}, which a '
            'contract declares as a failure'
        ) from None
    return Failure(machine, event, action, detail)


def call(*, timeout: float = 30) -> Callable[[Stub], Stub]:
    """Declare a stub to be answered while its caller waits."""
    return _declare(Call, timeout=timeout)


def _declare(
    made: type[Method], **facts: typing.Any
) -> Callable[[Stub], Stub]:
    def mark(stub: Stub) -> Stub:
        stub._declared = functools.partial(  # type: ignore[attr-defined]
            made, **facts
        )
        return stub

    return mark


class Contract:
    """The base of contracts; a subclass holds nothing but stubs.

    `name` is the class name in snake case without `Rpc`, unless given.
    It begins the kind of stored work and must not change afterwards.
    """

    topic: typing.ClassVar[str]
    version: typing.ClassVar[str]
    name: typing.ClassVar[str]
    methods: typing.ClassVar[Mapping[str, Method]]

    def __init_subclass__(cls) -> None:
        if 'name' not in vars(cls):
            cls.name = re.sub(
                r'(?<!^)(?=[A-Z])', '_', cls.__name__.removesuffix('Rpc')
            ).lower()
        cls.methods = {
            name: _method(cls, name, stub)
            for name, stub in vars(cls).items()
            if inspect.isfunction(stub)
        }


def _method(
    contract: type[Contract], name: str, stub: Callable[..., typing.Any]
) -> Method:
    declared = getattr(stub, '_declared', None)
    if declared is None:
        raise TypeError(
            f'{contract.__name__}.{name} is declared neither '
            '@durable nor @call'
        )
    parameters = _parameters(stub)
    if list(parameters)[:2] != ['self', 'ctx']:
        raise TypeError(
            f'{contract.__name__}.{name} takes self and ctx '
            'before its arguments'
        )
    args = tuple(parameters)[2:]
    method: Method = declared(
        topic=contract.topic,
        kind=f'{contract.name}.{name}',
        method=name,
        args=args,
        defaults=_defaults(parameters),
    )
    if isinstance(method, Durable):
        missing = {method.resource, method.one_per} - {None, *args}
        if missing:
            raise TypeError(f'{method.kind} has no argument {missing}')
    return method


def _parameters(function: Callable[..., typing.Any]) -> Args:
    """The default of every parameter, by name and in order."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _defaults(parameters: Args) -> Args:
    return {
        name: default
        for name, default in parameters.items()
        if default is not inspect.Parameter.empty
    }


def work_kinds(contract: type[Contract]) -> dict[str, Durable]:
    """The durable methods of a contract by the kind of their work."""
    return {
        method.kind: method
        for method in contract.methods.values()
        if isinstance(method, Durable)
    }


class Submit(typing.Protocol):
    """How work is stored: `manila_lite.work.table` does it."""

    def __call__(
        self,
        session: typing.Any,
        ctx: context.RequestContext,
        durable: Durable,
        queue: str,
        args: Args,
        /,
    ) -> object: ...


class Client:
    """Asks what a contract offers, under the names of the contract.

    A durable method takes `(session, ctx, **args)` and stores the work in
    the session's transaction. A call takes `(ctx, **args)` and gives the
    answer. Without `on` whoever serves the topic is asked.
    """

    def __init__(
        self,
        contract: type[Contract],
        submit: Submit,
        transport: rpc_transport.Transport,
        queue: str | None = None,
    ):
        self.contract = contract
        self._submit = submit
        self._transport = transport
        self._queue = queue

    def on(self, host: str) -> 'Client':
        """The same for the queue of one host; a pool is of its back end."""
        return Client(
            self.contract,
            self._submit,
            self._transport,
            host.partition('#')[0],
        )

    def __getattr__(self, name: str) -> Callable[..., typing.Any]:
        method = self.contract.methods.get(name)
        if isinstance(method, Durable):
            return functools.partial(self._store, method)
        if isinstance(method, Call):
            return functools.partial(self._call, method)
        raise AttributeError(f'{self.contract.__name__} has no {name}')

    def _store(
        self,
        method: Durable,
        session: typing.Any,
        ctx: context.RequestContext,
        **args: typing.Any,
    ) -> object:
        return self._submit(
            session,
            ctx,
            method,
            self._queue or method.topic,
            method.complete(args),
        )

    def _call(
        self, method: Call, ctx: context.RequestContext, **args: typing.Any
    ) -> typing.Any:
        values = method.complete(args)
        client = self._transport.client(
            method.topic,
            self._queue,
            namespace=self.contract.name,
            version=self.contract.version,
        )
        return client.call(ctx, method.method, values, method.timeout)


_HOOKS = {
    'prepare': ('self', 'session', 'job'),
    'dropped': ('self', 'session', 'job'),
    'failed': ('self', 'session', 'job', 'error'),
}


def implements(contract: type[Contract]) -> Callable[[Endpoint], Endpoint]:
    """Check a class of endpoints against its contract, or TypeError.

    Durable methods are `(self, job, ...)`, calls `(self, ctx, ...)` and
    may be reached from outside. Beside a durable method may stand
    `prepare_<durable>(self, session, job)`, `dropped_<durable>` with the
    same and `failed_<durable>(self, session, job, error)`.
    """

    def check(endpoint: Endpoint) -> Endpoint:
        for name, method in contract.methods.items():
            first = 'job' if isinstance(method, Durable) else 'ctx'
            _require(
                endpoint, name, ('self', first, *method.args), method.defaults
            )
            if isinstance(method, Call):
                getattr(endpoint, name).exposed = True
        for name in dir(endpoint):
            prefix, _, durable = name.partition('_')
            if prefix in _HOOKS:
                _require(endpoint, name, _HOOKS[prefix], {})
                if not isinstance(contract.methods.get(durable), Durable):
                    raise TypeError(
                        f'{endpoint.__name__}.{name} belongs to '
                        f'nothing durable in {contract.name}'
                    )
        endpoint.contract = contract  # type: ignore[attr-defined]
        return endpoint

    return check


def _require(
    endpoint: type,
    name: str,
    wanted: tuple[str, ...],
    defaults: Mapping[str, typing.Any],
) -> None:
    function = getattr(endpoint, name, None)
    if function is None:
        raise TypeError(f'{endpoint.__name__} lacks {name}')
    found = _parameters(function)
    if tuple(found) != wanted or _defaults(found) != defaults:
        raise TypeError(
            f'{endpoint.__name__}.{name} must take ({", ".join(wanted)}) '
            f'with the defaults {dict(defaults)}'
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Handler:
    """What does one kind of work.

    `prepare(session, job)` runs in the claiming transaction. When the
    work has failed, `failed(session, job, error)` runs in the one that
    ends it, and returns True when that is all that is to be done.
    `dropped(session, job)` gives back what work had taken, beside quota,
    that has failed or has become out of date.
    """

    durable: Durable
    run: Callable[..., typing.Any]
    prepare: Callable[..., typing.Any] | None
    failed: Callable[..., bool] | None
    dropped: Callable[..., typing.Any] | None


def endpoint_handlers(endpoint: typing.Any) -> dict[str, Handler]:
    """The handlers that an endpoint has, by the kind of work."""
    return {
        kind: Handler(
            durable,
            getattr(endpoint, durable.method),
            getattr(endpoint, f'prepare_{durable.method}', None),
            getattr(endpoint, f'failed_{durable.method}', None),
            getattr(endpoint, f'dropped_{durable.method}', None),
        )
        for kind, durable in work_kinds(endpoint.contract).items()
    }
