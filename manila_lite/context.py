"""Request context: the caller's identity and the request id."""

import typing

from oslo_context import context

from manila_lite import exception


class PolicyEnforcer(typing.Protocol):
    """The interface of `manila_lite.policies.enforcer.Enforcer`."""

    def allows(
        self, rule: str, target: typing.Any, creds: typing.Any
    ) -> bool: ...


class RequestContext(context.RequestContext):
    """The caller of one request and the caller's permissions.

    `project_id` and `user_id` are strings, `roles` a list of lower case
    role names. `enforcer` decides policy rules; a context restored from
    stored work has none and must not be checked.
    """

    def __init__(
        self, *args, enforcer: PolicyEnforcer | None = None, **kwargs
    ):
        kwargs.setdefault('overwrite', False)
        super().__init__(*args, **kwargs)
        self.enforcer = enforcer

    @property
    def actor(self) -> str | None:
        """The actor of this request in the journal of transitions."""
        return self.user_id

    def can(self, rule: str, target: typing.Any = None) -> bool:
        """Whether the caller may do `rule` to the target.

        The target has `project_id` and `user_id` as attributes or keys;
        without a target the caller's own project is used.
        """
        if self.enforcer is None:
            raise RuntimeError('a stored context has no policy enforcer')
        return self.enforcer.allows(
            rule, self if target is None else target, self
        )

    def authorize(self, rule: str, target: typing.Any = None) -> None:
        """Raise PolicyNotAuthorized unless the caller may do `rule`."""
        if not self.can(rule, target):
            raise exception.PolicyNotAuthorized(rule=rule)
