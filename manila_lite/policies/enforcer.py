"""Enforce policy rules, with overrides from the operator's files."""

from collections.abc import Callable, Iterable, Iterator
import os
import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_context import context
from oslo_log import log
from oslo_policy import _checks, policy

from manila_lite import policies
from manila_lite.policies import compiled

LOG = log.getLogger(__name__)

# Seconds between checks of the policy files.
_CHECK_INTERVAL = 1.0


class Enforcer:
    """The current rules; changed files are read within a second.

    Raises cfg.ConfigFileParseError when files are invalid at the start.
    When they become invalid later, the error is logged once and the old
    rules stay in effect.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        policy_file: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._conf = conf
        # The library's own class registers the [oslo_policy] options.
        self._policy_file = policy.Enforcer(conf, policy_file).policy_file
        self._clock = clock
        self._reloading = threading.Lock()
        self._files = self._list_files()
        self._closures = self._load()
        self._next_check_at = clock() + _CHECK_INTERVAL

    def allows(self, rule: str, target: object, creds: context.RequestContext) -> bool:
        """Whether the caller may do `rule` to the target.

        The target has `project_id` and `user_id` as attributes or keys.
        """
        if self._clock() >= self._next_check_at:
            self._refresh()
        return self._closures[rule](target, creds)

    def is_admin(self, creds: context.RequestContext) -> bool:
        """Whether the request context treats the caller as admin."""
        return self.allows('context_is_admin', creds, creds)

    def _refresh(self) -> None:
        if not self._reloading.acquire(blocking=False):
            return  # another thread checks; use the old rules this time
        try:
            self._next_check_at = self._clock() + _CHECK_INTERVAL
            found = self._list_files()
            if found == self._files:
                return
            self._files = found
            self._closures = self._load()
            LOG.info('Reloaded the policy rules')
        except cfg.ConfigFileParseError as error:
            LOG.error('Keeping the current policy rules: %s', error)
        finally:
            self._reloading.release()

    def _list_files(self) -> list[tuple]:
        """Return the policy files with stamps that change with them."""
        paths = [self._conf.find_file(self._policy_file)]
        for name in self._conf.oslo_policy.policy_dirs:
            folder = self._conf.find_file(name)
            if folder and os.path.isdir(folder):
                paths += [entry.path for entry in os.scandir(folder)]
        return [_stamp(path) for path in sorted(filter(None, paths))]

    def _load(self) -> compiled.CompiledRules:
        library = load_library(self._conf, self._policy_file)
        # The library evaluates the remaining checks by these rules; only
        # this class reads files.
        library.use_conf = False
        return compiled.CompiledRules(library)


def load_library(
    conf: cfg.ConfigOpts, policy_file: str | None = None
) -> policy.Enforcer:
    """Return the library with our rules and those of the files.

    Raises cfg.ConfigFileParseError when a file is invalid.
    """
    library = policy.Enforcer(conf, policy_file)
    library.suppress_default_change_warnings = True
    library.register_defaults(policies.list_rules())
    try:
        library.load_rules()
    except (
        ValueError,
        TypeError,
        AttributeError,
        OSError,
        cfg.Error,
    ) as error:  # errors seen with invalid content
        raise cfg.ConfigFileParseError(library.policy_file, str(error)) from error
    return library


def _stamp(path: str) -> tuple:
    try:
        stat = os.stat(path)
    except OSError:  # removed since it was listed
        return (path,)
    return (path, stat.st_ino, stat.st_mtime_ns, stat.st_size)


_KNOWN = (
    _checks.TrueCheck,
    _checks.FalseCheck,
    _checks.RuleCheck,
    _checks.GenericCheck,
)
"""Checks that ask for no role."""


def find_unknown(conf: cfg.ConfigOpts, roles: Iterable[str]) -> list[str]:
    """Return the roles that no rule mentions, in lower case.

    None is unknown if a rule asks another service: it may know all roles.
    """
    known = set()
    for rule in load_library(conf).rules.values():
        for check in _leaves(rule):
            if isinstance(check, _checks.RoleCheck):
                known.add(check.match.lower())
            elif not isinstance(check, _KNOWN):
                return []
    return sorted({role.lower() for role in roles} - known)


def _leaves(check: object) -> Iterator[Any]:
    """Yield the checks that a rule is combined of."""
    if isinstance(check, _checks.NotCheck):
        yield from _leaves(check.rule)
    elif isinstance(check, _checks.AndCheck | _checks.OrCheck):
        for part in check.rules:
            yield from _leaves(part)
    else:
        yield check
