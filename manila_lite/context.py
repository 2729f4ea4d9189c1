"""Who asks: the identity and the request id of one call."""

import typing

from oslo_context import context

from manila_lite import exception


class PolicyEnforcer(typing.Protocol):
    """What a context asks; `manila_lite.policies.enforcer` has the real."""

    def allows(
        self, rule: str, target: typing.Any, creds: typing.Any
    ) -> bool: ...


class RequestContext(context.RequestContext):
    """The caller of one request, and what the caller may do.

    `project_id` and `user_id` are strings, `roles` a list of lower case
    role names. `enforcer` answers policy questions; a context that was
    read back from stored work has none and is never asked.
    """

    def __init__(
        self, *args, enforcer: PolicyEnforcer | None = None, **kwargs
    ):
        kwargs.setdefault('overwrite', False)
        super().__init__(*args, **kwargs)
        self.enforcer = enforcer

    @property
    def actor(self) -> str | None:
        """Who the journal names for the moves of this request."""
        return self.user_id

    def can(self, rule: str, target: typing.Any = None) -> bool:
        """Tell whether the caller may do `rule` to the target.

        The target is anything with `project_id` and `user_id` as
        attributes or keys; without one the caller's own project counts.
        """
        if self.enforcer is None:
            raise RuntimeError('a stored context cannot be asked')
        return self.enforcer.allows(
            rule, self if target is None else target, self
        )

    def authorize(self, rule: str, target: typing.Any = None) -> None:
        """Return when allowed; raises PolicyNotAuthorized otherwise."""
        if not self.can(rule, target):
            raise exception.PolicyNotAuthorized(rule=rule)
