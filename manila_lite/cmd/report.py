"""The Guru Meditation Report: what a process does and how it is configured.

oslo.reports is imported when a report is written: it costs memory that
few processes ever need.
"""

import contextlib
import datetime
from importlib import metadata
import os
import traceback
import typing

from oslo_config import cfg

from manila_lite import masking

_SECTION = 'oslo_reports'


class _Version:
    """The version, as oslo.reports asks for it."""

    def vendor_string(self) -> str:
        return 'manila_lite'

    def product_string(self) -> str:
        return 'manila_lite'

    def version_string_with_package(self) -> str:
        return metadata.version('manila_lite')


def write(prog: str, conf: cfg.ConfigOpts, frame: typing.Any) -> None:
    """Write a report to [oslo_reports] log_dir, or to standard error.

    Runs in a signal handler, so it must not raise, nor use the buffer of
    standard error, which the interrupted function may be writing.
    """
    try:
        text, folder = _report(conf, frame), _log_dir(conf)
        if folder:
            now = datetime.datetime.now(datetime.UTC)
            name = f'{prog}_gurumeditation_{now:%Y%m%d%H%M%S}'
            with open(os.path.join(folder, name), 'w') as file:
                file.write(text)
            return
    except Exception:  # noqa: BLE001 it would end the process
        text = masking.mask(f'No report: {traceback.format_exc()}')
    data = memoryview(f'{text}\n'.encode())
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


def watch_file(conf: cfg.ConfigOpts) -> None:
    """Write reports when [oslo_reports] file_event_handler is touched."""
    if _SECTION not in conf.list_all_sections():
        return
    _log_dir(conf)
    if conf.oslo_reports.file_event_handler:
        from oslo_reports import guru_meditation_report

        guru_meditation_report.TextGuruMeditation.setup_autorun(
            _Version(), conf=conf, setup_signal=False
        )


def _report(conf: cfg.ConfigOpts, frame: typing.Any) -> str:
    from oslo_reports import guru_meditation_report

    masking.remember_secret_options(conf)
    found = guru_meditation_report.TextGuruMeditation(_Version(), frame)
    return masking.mask_known(str(found.run()))


def _log_dir(conf: cfg.ConfigOpts) -> str | None:
    from oslo_reports import opts

    opts.set_defaults(conf)
    return conf.oslo_reports.log_dir
