"""What SIGHUP reloads, and what it reports to need a restart."""

from collections.abc import Iterator
import contextlib
import logging

from oslo_config import cfg
from oslo_log import log

from manila_lite import conf as options, masking
from manila_lite.cmd import logs
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.start import EXPECTED_ERRORS, one_line_message
from manila_lite.conf import wrong_values
from manila_lite.quota import sets

LOG = logging.getLogger(__name__)


class Reloader:
    """Reads the configuration files again.

    An invalid file changes nothing. Policies and users are read whenever
    their files change, so there is nothing to do for them.
    """

    def __init__(self, process: Process, *, has_api: bool = False):
        self._process = process
        self._conf = process.conf
        self._has_api = has_api
        self._levels = logs.parse(self._conf.default_log_levels)

    def __call__(self) -> None:
        """Reload; report in the log what changed and what did not."""
        try:
            levels = logs.parse(self._read().default_log_levels)
            with _immutable_changes() as unchanged:
                changed = self._conf.mutate_config_files()
        except EXPECTED_ERRORS as error:
            LOG.error('Nothing is reloaded: %s', one_line_message(error))
            return
        names = {f'{group or "DEFAULT"}.{name}' for group, name in changed}
        if self._set_levels(levels):
            names.add(f'DEFAULT.{logs.OPTION}')
        logs.install()
        masking.remember_secret_options(self._conf)
        LOG.info('Reloaded; changed: %s', ', '.join(sorted(names)) or 'nothing')
        if unchanged:
            LOG.warning(
                'Changed in the files, but needs a restart: %s',
                ', '.join(sorted(unchanged)),
            )
        if any(group == 'quota' for group, _ in changed):
            self._set_quotas()

    def _read(self) -> cfg.ConfigOpts:
        """Read the files into a separate configuration, and check it."""
        fresh = cfg.ConfigOpts()
        options.register_all(fresh)
        log.register_options(fresh)
        with wrong_values.raised():
            fresh(
                [],
                project=options.PROJECT,
                default_config_files=self._conf.config_file,
                default_config_dirs=self._conf.config_dir,
            )
        options.check(fresh)
        return fresh

    def _set_levels(self, levels: dict[str, int]) -> bool:
        if levels == self._levels:
            return False
        for name in self._levels.keys() | levels.keys():
            level = levels.get(name, logging.NOTSET)
            logging.getLogger(name).setLevel(level)
        self._levels = levels
        return True

    def _set_quotas(self) -> None:
        """Let the new default quotas take effect in this process.

        The limits of existing projects are in the database. Only the API
        writes them, so that a file of another node does not.
        """
        limits = self._process.reload_limits()
        if not self._has_api:
            return
        try:
            self._process.db.write(sets.refresh_defaults, limits)
        except EXPECTED_ERRORS as error:
            LOG.error(
                'Existing projects keep their default quotas; send SIGHUP again: %s',
                one_line_message(error),
            )


@contextlib.contextmanager
def _immutable_changes() -> Iterator[set[str]]:
    """Collect changed options that oslo.config does not apply.

    It would log one line for each, also for those that we do apply, and one
    for each change, with its value.
    """
    found: set[str] = set()

    def collect(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and isinstance(record.args, dict):
            name = f'{record.args["group"]}.{record.args["option"]}'
            if name != f'DEFAULT.{logs.OPTION}':
                found.add(name)
        return False

    library = logging.getLogger('oslo_config.cfg')
    library.addFilter(collect)
    try:
        yield found
    finally:
        library.removeFilter(collect)
