"""RPC contracts: declarations, clients, endpoints and handlers.

A contract declares once what one service may ask of another. Clients are
generated from it and endpoints are checked against it on import, so
caller and callee cannot disagree about a method.
"""

from collections.abc import Callable, Collection, Mapping
import dataclasses
import functools
import inspect
import re
import typing

from manila_lite import context, exception, release
from manila_lite.host import Host
from manila_lite.rpc import previous, transport as rpc_transport
from manila_lite.states.machine import Machine

Args = dict[str, typing.Any]
Stub = typing.TypeVar('Stub', bound=Callable[..., typing.Any])
Endpoint = typing.TypeVar('Endpoint', bound=type)
Given = typing.TypeVar('Given', bound='Contract')


@dataclasses.dataclass(frozen=True)
class Failure:
    """The event to fire when work has failed, and the user message."""

    machine: Machine
    event: str
    action: typing.Any = None
    detail: typing.Any = None


Refused = Mapping[type[Exception], tuple[str, typing.Any]]
"""Event and message detail by class of error."""


@dataclasses.dataclass(frozen=True, eq=False)
class Method:
    """One method of a contract.

    `args` are the names of its arguments after `ctx`, in order;
    `defaults` holds the values of the optional ones.
    """

    topic: str
    kind: str
    method: str
    args: tuple[str, ...]
    defaults: Mapping[str, typing.Any]

    def complete(self, given: Args) -> Args:
        """Return the arguments with defaults; TypeError if they do not fit."""
        values = {**self.defaults, **given}
        if values.keys() != set(self.args):
            raise TypeError(f'{self.kind} takes {list(self.args)}, not {sorted(given)}')
        return values

    def without_defaults(self, values: Mapping[str, typing.Any]) -> Args:
        """Return the arguments that differ from their defaults.

        A process of the previous release knows these, unless the caller
        uses what is new.
        """
        return {
            name: value
            for name, value in values.items()
            if name not in self.defaults or value != self.defaults[name]
        }

    def needed_release(self, values: Mapping[str, typing.Any]) -> int | None:
        """Return the release that knows what the caller uses.

        None if the previous one does: no older one runs beside this one.
        """
        known = previous.KINDS.get(self.kind)
        if known is not None and self.without_defaults(values).keys() <= known:
            return None
        return release.NUMBER


@dataclasses.dataclass(frozen=True, eq=False)
class Durable(Method):
    """A method that is stored as work and run by the worker that claims it.

    The first argument is the id of the resource. Requests with the same id are
    coalesced if this is declared. Abandoned work that is `repeatable` may simply
    run again. Work on the same id never runs at the same time if it has the same
    `exclusion`, the name of a resource; by default that is the resource of the
    work.
    """

    failures: tuple[tuple[type[Exception], Failure], ...]
    coalesced: bool
    repeatable: bool
    exclusion: str | None

    @property
    def resource(self) -> str:
        """The name of the argument with the id of the resource."""
        return self.args[0]

    @property
    def one_per(self) -> str | None:
        """The name of the argument whose values have one request each."""
        return self.resource if self.coalesced else None

    @property
    def resource_name(self) -> str:
        """The resource of the state tables that this work is about."""
        return (
            self.failure.machine.resource
            if self.failure
            else self.resource.removesuffix('_id')
        )

    @property
    def failure(self) -> Failure | None:
        """The failure for all other errors; None when nothing is fired."""
        return self.failures[-1][1] if self.failures else None

    def failure_of(self, error: Exception) -> Failure | None:
        """Return the failure declared for this error."""
        for kind, failure in self.failures:
            if isinstance(error, kind):
                return failure
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class Call(Method):
    """A method whose caller waits for the result, up to `timeout` seconds."""

    timeout: float


def durable(
    failure: tuple[Machine, str] | None = None,
    action: object = None,
    detail: object = None,
    *,
    refused: Refused | None = None,
    coalesced: bool | None = None,
    repeatable: bool | None = None,
    exclusion: str | None = None,
) -> Callable[[Stub], Stub]:
    """Declare a stub as durable: stored as work with the transaction.

    `failure` is the event to fire when the work has failed for good,
    `refused` has other events for certain errors. `action` and `detail`
    are the codes of the user message. `coalesced` and `repeatable` are those
    of the contract unless they are given.
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
        coalesced=coalesced,
        repeatable=repeatable,
        exclusion=exclusion,
    )


def _failure(machine: Machine, event: str, action: object, detail: object) -> Failure:
    try:
        machine[event]
    except KeyError:
        raise TypeError(
            f'a contract declares the failure event {event}, which '
            f'{machine.resource} does not have'
        ) from None
    return Failure(machine, event, action, detail)


def call(*, timeout: float = 30) -> Callable[[Stub], Stub]:
    """Declare a stub as a call: its caller waits for the result."""
    return _declare(Call, timeout=timeout)


def _declare(kind: type[Method], **options: typing.Any) -> Callable[[Stub], Stub]:
    def mark(stub: Stub) -> Stub:
        stub._declared = functools.partial(  # type: ignore[attr-defined]
            kind, **options
        )
        return stub

    return mark


class Contract:
    """Base class of contracts; a subclass contains only stubs.

    `name` defaults to the class name without `Rpc`, in snake case. It is
    the prefix of the kind of stored work, so it must never change.
    `coalesced` and `repeatable` are what its durable methods are by default.
    """

    topic: typing.ClassVar[str]
    version: typing.ClassVar[str]
    name: typing.ClassVar[str]
    coalesced: typing.ClassVar[bool] = False
    repeatable: typing.ClassVar[bool] = False
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
        raise TypeError(f'{contract.__name__}.{name} is neither @durable nor @call')
    parameters = _parameters(stub)
    if list(parameters)[:2] != ['self', 'ctx']:
        raise TypeError(
            f'{contract.__name__}.{name} must take self and ctx before its arguments'
        )
    args = tuple(parameters)[2:]
    method: Method = declared(
        topic=contract.topic,
        kind=f'{contract.name}.{name}',
        method=name,
        args=args,
        defaults=_defaults(parameters),
    )
    if not isinstance(method, Durable):
        return method
    if not args:
        raise TypeError(f'{method.kind} must take the id of its resource')
    inherited = {
        flag: getattr(contract, flag)
        for flag in ('coalesced', 'repeatable')
        if getattr(method, flag) is None
    }
    return dataclasses.replace(method, **inherited)


def _parameters(function: Callable[..., typing.Any]) -> Args:
    """Return the default of every parameter by name, in order."""
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
    """Return the durable methods of a contract by kind of work."""
    return {
        method.kind: method
        for method in contract.methods.values()
        if isinstance(method, Durable)
    }


class Submit(typing.Protocol):
    """Stores work; implemented by `manila_lite.work.table`."""

    def __call__(
        self,
        session: typing.Any,
        ctx: context.RequestContext,
        durable: Durable,
        queue: str,
        args: Args,
        /,
    ) -> object: ...


OldestRelease = Callable[[str, str | None], int | None]
"""Returns the oldest release of the live processes of a topic and host."""


class Client(typing.Generic[Given]):
    """The client of a contract, with the methods of the contract.

    A durable method takes `(session, ctx, **args)` and stores the work in
    the session's transaction. A call takes `(ctx, **args)` and returns
    the result. Without `on`, requests go to any server of the topic.

    A call that is new in this release raises NewerReleaseNeeded as long as
    a process that may get it is of an older one, says `oldest_release`.
    """

    def __init__(
        self,
        contract: type[Given],
        submit: Submit,
        transport: rpc_transport.Transport | None,
        queue: str | None = None,
        oldest_release: OldestRelease | None = None,
    ):
        self.contract = contract
        self._submit = submit
        self._transport = transport
        self._queue = queue
        self._oldest_release = oldest_release

    def on(self, host: str) -> 'Client[Given]':
        """Return a client for the queue of the back end of this host."""
        return Client(
            self.contract,
            self._submit,
            self._transport,
            Host.parse(host).service_host,
            self._oldest_release,
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
            session, ctx, method, self._queue or method.topic, method.complete(args)
        )

    def _call(
        self, method: Call, ctx: context.RequestContext, **args: object
    ) -> typing.Any:
        values = method.complete(args)
        assert self._transport is not None, 'a call needs a transport'
        self._require_release(method, values)
        client = self._transport.client(
            method.topic,
            self._queue,
            namespace=self.contract.name,
            version=self.contract.version,
        )
        return client.call(
            ctx, method.method, method.without_defaults(values), method.timeout
        )

    def _require_release(self, method: Call, values: Args) -> None:
        needed = method.needed_release(values)
        if needed is None or self._oldest_release is None:
            return
        oldest = self._oldest_release(method.topic, self._queue)
        if oldest is not None and oldest < needed:
            raise exception.NewerReleaseNeeded(
                method=method.method, where=self._queue or method.topic
            )


@dataclasses.dataclass(frozen=True)
class Hooks:
    """What `work` declares for a durable method of an endpoint."""

    expects: tuple[str, ...]
    load: Callable[..., typing.Any] | None
    failed: str | None
    dropped: str | None


def work(
    *,
    expects: str | Collection[str] = (),
    load: Callable[..., typing.Any] | None = None,
    failed: str | None = None,
    dropped: str | None = None,
) -> Callable[[Stub], Stub]:
    """Declare what is usual around a durable method of an endpoint.

    `expects` names the statuses of its resource: `prepare` is the method
    `expect(session, job, *expects)` of the endpoint, which reads the resource
    by `load` if that is given, and rejects stale work. `failed` and `dropped`
    are the names of the methods that are these hooks.
    """

    def declare(method: Stub) -> Stub:
        method.hooks = Hooks(  # type: ignore[attr-defined]
            (expects,) if isinstance(expects, str) else tuple(expects),
            load,
            failed,
            dropped,
        )
        return method

    return declare


_NO_HOOKS = Hooks((), None, None, None)


def _hooks(endpoint: object, name: str) -> Hooks:
    return getattr(getattr(endpoint, name), 'hooks', _NO_HOOKS)


_HOOKS = {
    'prepare': ('self', 'session', 'job'),
    'dropped': ('self', 'session', 'job'),
    'failed': ('self', 'session', 'job', 'error'),
}


def implements(contract: type[Contract]) -> Callable[[Endpoint], Endpoint]:
    """Check an endpoint class against its contract; raise TypeError.

    Durable methods take `(self, job, ...)`. Calls take `(self, ctx, ...)`
    and are exposed to RPC. A durable method may have the hooks
    `prepare_<durable>(self, session, job)`,
    `dropped_<durable>(self, session, job)` and
    `failed_<durable>(self, session, job, error)`.
    """

    def check(endpoint: Endpoint) -> Endpoint:
        for name, method in contract.methods.items():
            first = 'job' if isinstance(method, Durable) else 'ctx'
            _require(endpoint, name, ('self', first, *method.args), method.defaults)
            if isinstance(method, Call):
                getattr(endpoint, name).exposed = True
            else:
                _check_declared(endpoint, method)
        for name in dir(endpoint):
            prefix, _, durable = name.partition('_')
            if prefix in _HOOKS:
                _require(endpoint, name, _HOOKS[prefix], {})
                if not isinstance(contract.methods.get(durable), Durable):
                    raise TypeError(
                        f'{endpoint.__name__}.{name} is a hook of '
                        f'no durable method of {contract.name}'
                    )
        endpoint.contract = contract  # type: ignore[attr-defined]
        return endpoint

    return check


def _check_declared(endpoint: type, method: Method) -> None:
    """Check what `work` declares: once, for statuses that work owes a move."""
    hooks, name = _hooks(endpoint, method.method), method.method
    for prefix in ('failed', 'dropped'):
        if declared := getattr(hooks, prefix):
            _require(endpoint, declared, _HOOKS[prefix], {})
    for prefix, declared in (
        ('prepare', hooks.expects),
        ('failed', hooks.failed),
        ('dropped', hooks.dropped),
    ):
        if declared and hasattr(endpoint, f'{prefix}_{name}'):
            raise TypeError(f'{endpoint.__name__}.{name} has two hooks {prefix}')
    if hooks.expects and not hasattr(endpoint, 'expect'):
        raise TypeError(f'{endpoint.__name__}.{name} has no method expect to prepare')
    failure = method.failure if isinstance(method, Durable) else None
    for status in hooks.expects:
        if failure and status not in failure.machine.in_flight:
            raise TypeError(
                f'{endpoint.__name__}.{name} expects {status}, in which no '
                f'{failure.machine.resource} waits for work'
            )


def _require(
    endpoint: type,
    name: str,
    wanted: tuple[str, ...],
    defaults: Mapping[str, typing.Any],
) -> None:
    function = getattr(endpoint, name, None)
    if function is None:
        raise TypeError(f'{endpoint.__name__} has no method {name}')
    found = _parameters(function)
    if tuple(found) != wanted or _defaults(found) != defaults:
        raise TypeError(
            f'{endpoint.__name__}.{name} must take ({", ".join(wanted)}) '
            f'with the defaults {dict(defaults)}'
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Handler:
    """Runs one kind of work.

    `prepare(session, job)` runs in the claiming transaction. When the
    work has failed, `failed(session, job, error)` runs in the transaction
    that ends it, and returns True when nothing else is to be done.
    `dropped(session, job)` releases what failed or stale work had
    reserved besides quota.
    """

    durable: Durable
    run: Callable[..., typing.Any]
    prepare: Callable[..., typing.Any] | None
    failed: Callable[..., bool] | None
    dropped: Callable[..., typing.Any] | None


def endpoint_handlers(endpoint: typing.Any) -> dict[str, Handler]:
    """Return the handlers of an endpoint by kind of work."""
    return {
        kind: Handler(
            durable,
            getattr(endpoint, durable.method),
            _prepare(endpoint, durable.method),
            _hook(endpoint, durable.method, 'failed'),
            _hook(endpoint, durable.method, 'dropped'),
        )
        for kind, durable in work_kinds(endpoint.contract).items()
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The endpoints of a service; a subclass has a field for each concern."""

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of all endpoints by kind of work."""
        found: dict[str, Handler] = {}
        for field in dataclasses.fields(self):
            found |= endpoint_handlers(getattr(self, field.name))
        return found


def _prepare(endpoint: typing.Any, name: str) -> Callable[..., typing.Any] | None:
    hooks = _hooks(endpoint, name)
    if not hooks.expects:
        return getattr(endpoint, f'prepare_{name}', None)
    by = {'find': hooks.load} if hooks.load else {}
    return lambda session, job: endpoint.expect(session, job, *hooks.expects, **by)


def _hook(endpoint: object, name: str, prefix: str) -> Callable[..., typing.Any] | None:
    declared = getattr(_hooks(endpoint, name), prefix)
    return getattr(endpoint, declared or f'{prefix}_{name}', None)
