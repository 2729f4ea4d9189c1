"""A node that the scripts of deploy set up, in a root of its own.

It has the packages of this machine. HAProxy and the services are real; the broker is
not there, which they bear.
"""

from collections.abc import Iterator
import contextlib
import pathlib
import re
import shlex
import shutil
import sys

import sqlalchemy as sa

from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support import clean_root, databases

# Virtual environments find what pip would have to download. Packages of
# Debian need not be those of this machine.
SITE = f'python{sys.version_info.major}.{sys.version_info.minor}/site-packages'
PYTHON = f"""#!/bin/sh
python={sys.base_prefix}/bin/python3
if [ "$1 $2" != '-m venv' ]; then
    exec $python "$@"
fi
$python -m venv --without-pip "$3" || exit
echo /packages > "$3/lib/{SITE}/packages.pth"
echo '#!/bin/sh' > "$3/bin/pip"
echo "exec $3/bin/python -m pip \\"\\$@\\"" >> "$3/bin/pip"
chmod 755 "$3/bin/pip"
"""
PREPARE = r"""
export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
step() {
    printf '\n== %s\n' "$*"
}
# The process that serves the back ends.
share() {
    cat /run/units/manila-lite-share.pid
}
"""

# touched FUNCTION ARGUMENT...: what a function prints, and what it has changed.
# Services may write in the directories of their own.
LOOK = r"""
look() {
    find /etc /opt /root /srv /usr/local /var \
        \( -path '/var/l*/manila' -o -path '/srv/shares/*/*' -o -path /var/tmp \
        -o -path /root/.ansible -o -path '*/.packed' \) -prune \
        -o -printf '%p %y %m %u:%g %s %C@\n' | sort
    tail -n +1 /run/units/*.pid 2> /dev/null || true
    grep -lsx haproxy /proc/[0-9]*/comm || true
}
touched() {
    local before
    before=$(look)
    "$@" 2>&1 || echo "ended with $?"
    diff <(echo "$before") <(look) | sed 's/^/touched /' || true
}
"""


class Node:
    """Runs lines in the root; `steps` are what each of them printed."""

    def __init__(self, folder: pathlib.Path):
        self.root = clean_root.CleanRoot(folder)
        self.variables: dict[str, str] = {}
        self.root.add_deploy()
        self.root.add_program('python3', PYTHON)
        etc = self.root.folder / 'etc'
        for name in ('haproxy', 'init.d'):
            shutil.copytree(f'/etc/{name}', etc / name)
        self.root.add_user('haproxy', 900, '/var/lib/haproxy')
        for name in ('etc/logrotate.d', 'var/lib/haproxy', 'run/lock'):
            (self.root.folder / name).mkdir()
        (self.root.folder / 'var/run').symlink_to('/run')

    def configure(self, text: str) -> None:
        (self.root.checkout / 'deploy/local.conf').write_text(text)

    def set_variables(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.configure(
            ''.join(f'{name}={shlex.quote(variables[name])}\n' for name in variables)
        )

    def add_conf(self, text: str) -> None:
        (self.root.folder / 'root/extra.conf').write_text(text)
        with (self.root.checkout / 'deploy/local.conf').open('a') as file:
            file.write('EXTRA_CONF=/root/extra.conf\n')

    def run(self, script: str) -> dict[str, list[str]]:
        (self.root.folder / 'root/script').write_text(PREPARE + script)
        ended = self.root.run(
            [
                'python3 -m venv /tmp/venv',
                '/tmp/venv/bin/pip download --quiet --dest /wheels '
                "'setuptools>=77' wheel",
            ],
            ['bash -euo pipefail /root/script'],
            stdin='',
            timeout=900,
        )
        assert ended.returncode == 0, ended.stdout
        return {
            name: text.strip().splitlines()
            for name, text in re.findall(
                r'^== (.+)\n((?:(?!== ).*\n)*)', ended.stdout, re.MULTILINE
            )
        }


@contextlib.contextmanager
def new(folder: pathlib.Path) -> Iterator[Node]:
    """Yield a node with a database, of a server of this machine."""
    clean_root.require_namespaces()
    found = Node(folder / 'root')
    with databases.temporary_database('mysql', folder) as url:
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            socket = connection.exec_driver_sql('SELECT @@socket').scalar()
        found.root.bind(str(pathlib.Path(socket).parent))
        parsed = sa.make_url(url)
        account = f'{parsed.username}:{parsed.password or ""}'
        found.set_variables(
            {
                'NODE_NAME': 'node',
                'DATABASE_URL': f'mysql+pymysql://{account}@localhost/'
                f'{parsed.database}?unix_socket={socket}',
                'TRANSPORT_URL': 'rabbit://nobody@127.0.0.1:1/',
                'LOCKS_URL': 'file:///var/lib/manila/locks',
                'BACKENDS': 'disk',
            }
        )
        schema.sync(Database(url))
        yield found
