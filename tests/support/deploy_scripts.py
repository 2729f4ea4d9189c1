"""Run functions of the scripts in `deploy`."""

import os
import pathlib
import shutil
import subprocess
import sys

from oslo_config import cfg

from tests.support import requirements

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / 'deploy'

PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
read_variables
DATABASE_PASSWORD=a BROKER_PASSWORD=b LOCKS_PASSWORD=c
KEYSTONE_PASSWORD=d KEYSTONE_DATABASE_PASSWORD=e TOKEN_KEY=f
use_servers
use_identity
"""
PATH = '/usr/sbin:/usr/bin:/sbin:/bin'


def tool(name: str) -> str:
    """Return the path of a program that pip or Debian has installed."""
    own = pathlib.Path(sys.executable).with_name(name)
    found = shutil.which(own) or shutil.which(name, path=PATH)
    if found is None:
        requirements.missing(f'{name} is not installed')
    return found


def run(*command: object, **env: str) -> str:
    """Return what a command prints; fail with it if that fails."""
    ended = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={'PATH': PATH, **env},
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def shell(
    lines: str, variables: str, folder: pathlib.Path, prepare: str = PREPARE, **env: str
) -> str:
    """Return what lines print that use the functions of deploy."""
    file = folder / 'local.conf'
    file.write_text(variables)
    return run(
        *('bash', '-c', prepare + lines),
        **{'DEPLOY': str(DEPLOY), 'LOCAL_CONF': str(file), **env},
    )


def option(file: pathlib.Path, name: str, group: str | None = None) -> str:
    """Return the value that a service finds in its configuration."""
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.StrOpt(name), group)
    conf(['--config-file', str(file)])
    return (conf[group] if group else conf)[name]


def require_root() -> None:
    """Skip what only root can do; fail if CI is set."""
    if os.geteuid():
        requirements.missing('only root can act for other users')
    if shutil.which('runuser') is None:
        requirements.missing('runuser is not installed')
