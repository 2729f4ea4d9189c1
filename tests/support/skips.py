"""Skipped tests, counted by what they need; the last lines of a run."""

import collections
import re

import pytest

MOST_LINES = 10

_SERVERS = '`make servers` says how'
_STORAGE = '`tools/install-storage-packages` and root'

NEEDS = {
    r'\b(PostgreSQL|MySQL|MariaDB|mysqlclient|galera|HAProxy|psycopg2|pg_\w+'
    r'|mysqldump|mysql|mariadbd?)\b': f'need a database server: {_SERVERS}',
    r'\b(RabbitMQ|Redis|redis-server|memcached|prometheus)\b': (
        f'need another server: {_SERVERS}'
    ),
    'package index': 'need a package index, which pip is configured for',
    r'install-browser': 'need a browser: `tools/install-browser`',
    r'install-ansible': 'need Ansible: `tools/install-ansible`',
    r'install-dashboard': 'need Horizon: `tools/install-dashboard`',
    r'(btrfs|ganesha|CAP_\w+|dbus|smbd?|smbpasswd|libnss_wrapper|loop-control'
    r'|network namespaces|ip|nsenter|unshare) is missing': (
        f'need real storage: {_STORAGE}'
    ),
    r'(ceph(-\w+)?|python3-rados) is missing|Ceph cluster': (
        'need Ceph: `tools/install-ceph-packages` and root'
    ),
    r'files open$': 'need a higher limit of open files: `ulimit -n`',
    r'\b(only root|as root|mount namespace)\b': 'need root',
    r'\bis (missing|not installed)\b': 'need a program that is not installed',
    r'^(the driver|tests cannot|it migrates|there are only|--driver-peers)|'
    r'does not apply': 'do not apply to a driver',
}
"""Patterns of reasons, and what such tests need."""


def need_of(reason):
    """Return what a test needs that was skipped for this reason."""
    return next(
        (
            need
            for pattern, need in NEEDS.items()
            if re.search(pattern, reason, re.IGNORECASE)
        ),
        reason.splitlines()[0] if reason else 'no reason',
    )


def lines_of(reasons):
    """Return at most ten lines that count all of these reasons."""
    counts = collections.Counter(map(need_of, reasons)).most_common()
    shown, others = counts, counts[MOST_LINES:]
    if others:
        shown, others = counts[: MOST_LINES - 1], counts[MOST_LINES - 1 :]
    lines = [f'{count:,} {need}' for need, count in shown]
    if others:
        rest = sum(count for _, count in others)
        lines.append(f'{rest:,} for other reasons; `pytest -rs` has all')
    return lines


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Print them after the names of failed tests."""
    result = yield
    reasons = [
        report.longrepr[2].removeprefix('Skipped: ')
        for report in terminalreporter.stats.get('skipped', ())
        if isinstance(report.longrepr, tuple)
    ]
    if reasons:
        terminalreporter.write_sep('=', f'{len(reasons):,} skipped')
        for line in lines_of(reasons):
            terminalreporter.write_line(line)
    return result
