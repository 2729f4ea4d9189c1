"""The users that the file of users contains now."""

from collections.abc import Iterable, Mapping

from oslo_config import cfg
from oslo_log import log

from manila_lite.api.auth import line_file, users
from manila_lite.context import RequestContext

LOG = log.getLogger(__name__)


class CurrentUsers:
    """Reads the file of users; a change takes effect with the next call.

    Raises cfg.ConfigFileParseError if the file is malformed at the start;
    later, the error is logged once and the previous users are kept.
    """

    def __init__(self, path: str):
        self._path = path
        # The state of the file and its users, replaced as one value, so that
        # a thread that reads slowly cannot hide a later change.
        self._loaded = (line_file.state(self._path), self._read())

    def by_name(self) -> Mapping[str, users.User]:
        """Return all users by their names."""
        old_state, loaded_users = self._loaded
        state = line_file.state(self._path)
        if state != old_state:
            try:
                loaded_users = self._read()
            except cfg.ConfigFileParseError as error:
                LOG.error('Malformed users file, keeping the previous users: %s', error)
            self._loaded = (state, loaded_users)
        return loaded_users

    def users_like(
        self, ctx: RequestContext, wanted: str | None
    ) -> Iterable[users.User]:
        """Return all users; none exists because a request names it."""
        return self.by_name().values()

    def _read(self) -> dict[str, users.User]:
        try:
            return users.read(self._path)
        except OSError as error:
            LOG.warning('Cannot read the users file; all logins fail: %s', error)
            return {}
