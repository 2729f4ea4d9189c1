"""Answers who may do what, from the rules and the operator's files."""

from collections.abc import Callable
import os
import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_context import context
from oslo_log import log
from oslo_policy import policy

from manila_lite import policies
from manila_lite.policies import compiled

LOG = log.getLogger(__name__)

# Seconds between two looks at the files.
_LOOK_EVERY = 1.0


class Enforcer:
    """The rules in force; changed files are read within a second.

    Raises cfg.ConfigFileParseError when the files are broken at the start.
    Broken later, they are reported once and the old rules stay.
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
        self._seen = self._look()
        self._closures = self._load()
        self._look_again_at = clock() + _LOOK_EVERY

    def allows(
        self, rule: str, target: Any, creds: context.RequestContext
    ) -> bool:
        """Tell whether the caller may do `rule` to the target.

        The target has `project_id` and `user_id` as attributes or keys.
        """
        if self._clock() >= self._look_again_at:
            self._refresh()
        return self._closures[rule](target, creds)

    def is_admin(self, creds: context.RequestContext) -> bool:
        """Tell whether the request context shall call the caller admin."""
        return self.allows('context_is_admin', creds, creds)

    def _refresh(self) -> None:
        if not self._reloading.acquire(blocking=False):
            return  # another thread looks; the old rules do for this call
        try:
            self._look_again_at = self._clock() + _LOOK_EVERY
            found = self._look()
            if found == self._seen:
                return
            self._seen = found
            self._closures = self._load()
            LOG.info('Policy rules were read again.')
        except cfg.ConfigFileParseError as error:
            LOG.error('The policy rules in force stay: %s', error)
        finally:
            self._reloading.release()

    def _look(self) -> list[tuple]:
        """The policy files there are, with what changes when they do."""
        paths = [self._conf.find_file(self._policy_file)]
        for name in self._conf.oslo_policy.policy_dirs:
            folder = self._conf.find_file(name)
            if folder and os.path.isdir(folder):
                paths += [entry.path for entry in os.scandir(folder)]
        return [_stamp(path) for path in sorted(filter(None, paths))]

    def _load(self) -> compiled.Closures:
        library = policy.Enforcer(self._conf, self._policy_file)
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
        ) as error:  # all that odd content has shown
            raise cfg.ConfigFileParseError(self._policy_file, error) from error
        # What the library is still asked, it answers from these rules:
        # reading files is our business.
        library.use_conf = False
        return compiled.Closures(library)


def _stamp(path: str) -> tuple:
    try:
        stat = os.stat(path)
    except OSError:  # removed since it was listed
        return (path,)
    return (path, stat.st_ino, stat.st_mtime_ns, stat.st_size)
