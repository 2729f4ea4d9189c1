"""Request context: the caller's identity and the request id."""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
import typing

from oslo_context import context

from manila_lite import exception

P = typing.ParamSpec('P')
T = typing.TypeVar('T')


class PolicyEnforcer(typing.Protocol):
    """The interface of `manila_lite.policies.enforcer.Enforcer`."""

    def allows(self, rule: str, target: object, creds: 'RequestContext') -> bool: ...


class FencingToken(typing.NamedTuple):
    """Says which of two workers on a resource came later.

    A back end that has seen a larger `value` for this `resource` may be
    called by a worker that was paused, lost its claim and does not know.
    It should refuse the call with StaleFencingToken.
    """

    resource: str
    value: int


_token: contextvars.ContextVar[FencingToken | None] = contextvars.ContextVar(
    'fencing_token', default=None
)


def current_fencing_token() -> FencingToken | None:
    """Return the token of the driver call that this thread is in.

    For driver methods that are called without a context.
    """
    return _token.get()


@contextlib.contextmanager
def fenced(token: FencingToken | None) -> Iterator[None]:
    """Make this the current fencing token inside the block."""
    reset = _token.set(token)
    try:
        yield
    finally:
        _token.reset(reset)


class RequestContext(context.RequestContext):
    """The caller of one request and the caller's permissions.

    `project_id` and `user_id` are strings, `roles` a list of lower case
    role names. `enforcer` decides policy rules; a context restored from
    stored work has none and must not be checked. What a driver is called
    with has the `fencing_token` of the work.
    """

    def __init__(
        self,
        *args: typing.Any,
        enforcer: PolicyEnforcer | None = None,
        fencing_token: FencingToken | None = None,
        **kwargs: typing.Any,
    ):
        kwargs.setdefault('overwrite', False)
        super().__init__(*args, **kwargs)
        self.enforcer = enforcer
        self.fencing_token = fencing_token

    @property
    def actor(self) -> str | None:
        """The actor of this request in the journal of transitions."""
        return self.user_id

    def can(self, rule: str, target: object = None) -> bool:
        """Whether the caller may do `rule` to the target.

        The target has `project_id` and `user_id` as attributes or keys;
        without a target the caller's own project is used.
        """
        if self.enforcer is None:
            raise RuntimeError('a stored context has no policy enforcer')
        return self.enforcer.allows(rule, self if target is None else target, self)

    def authorize(self, rule: str, target: object = None) -> None:
        """Raise PolicyNotAuthorized unless the caller may do `rule`."""
        if not self.can(rule, target):
            raise exception.PolicyNotAuthorized(rule=rule)


forget_caller = RequestContext(request_id='-').update_store
"""Log what this thread does next as done for no request."""


@contextlib.contextmanager
def logged_as(ctx: RequestContext) -> Iterator[None]:
    """Log what the block does with the ids of a request."""
    ctx.update_store()
    try:
        yield
    finally:
        forget_caller()


def in_callers_context(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, for another thread that runs nothing else.

    There it has the context variables of this thread, such as its job, and
    logs with the ids of the request that this thread works for.
    """
    variables = contextvars.copy_context()
    caller = context.get_current()

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if caller is not None:
            caller.update_store()
        return variables.run(function, *args, **kwargs)

    return run
