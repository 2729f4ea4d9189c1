"""Servers that deploy configures, in runs that end at every step.

The files are written by the scripts, in a root of their own; the servers are
only noted to have read them.
"""

import shutil

import pytest

from tests.support import clean_root

USERS = ('haproxy', 'postgres', 'redis')
# Each ends the script after it has done the step of this number.
STEP = """
echo >> /root/steps
if [[ $(wc -l < /root/steps) == "$(< /root/last)" ]]; then
    kill -KILL "$(< /root/pid)"
fi
"""
MV = f"""#!/bin/bash -eu
/bin/mv "$@"
{STEP}"""
# A restarted server reads all its files, a reloaded HAProxy no options.
SYSTEMCTL = f"""#!/bin/bash -eu
case $1 in
    restart) cp -rT /etc /read ;;
    reload) cp -rT /etc/haproxy /read/haproxy ;;
    *) exit 0 ;;
esac
{STEP}"""
SET_UP = """
echo $$ > /root/pid
export DEPLOY=/root/manila_lite/deploy LOCAL_CONF=/root/local.conf
source "$DEPLOY/lib/all.sh"
require_root
read_variables
mkdir -p "$ETC"
DATABASE_PASSWORD=a BROKER_PASSWORD=b LOCKS_PASSWORD=c
use_servers
use_identity
"$1"
report_changes
"""
RUN = r"""
cp -rT /etc /root/etc
step=1
while true; do
    rm -rf /etc/manila_lite /etc/mysql /etc/postgresql /etc/redis /etc/haproxy
    cp -rT /root/etc /etc
    rm -rf /read
    cp -rT /etc /read
    echo "$step" > /root/last
    : > /root/steps
    if bash -euo pipefail /root/set_up "$1" > /dev/null; then
        break
    fi
    echo 0 > /root/last
    bash -euo pipefail /root/set_up "$1" > /dev/null
    for name in default haproxy mysql postgresql redis; do
        diff -r "/etc/$name" "/read/$name"
    done
    bash -euo pipefail /root/set_up "$1"
    step=$((step + 1))
done
"""


@pytest.fixture
def root(tmp_path):
    clean_root.require_namespaces()
    found = clean_root.CleanRoot(tmp_path / 'root')
    found.add_deploy()
    for name, text in (
        ('mv', MV),
        ('systemctl', SYSTEMCTL),
        # The accounts exist.
        ('mariadb', '#!/bin/true\n'),
        ('psql', '#!/bin/true\n'),
    ):
        found.add_program(name, text)
    for name, text in (
        ('etc/default/haproxy', ''),
        ('etc/mysql/mariadb.conf.d/50-server.cnf', ''),
        ('etc/postgresql/15/main/conf.d/other.conf', ''),
        ('etc/postgresql/15/main/pg_hba.conf', ''),
        ('etc/redis/redis.conf', ''),
        ('root/local.conf', ''),
        ('root/set_up', SET_UP),
        ('root/run', RUN),
    ):
        path = found.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree('/etc/haproxy', found.folder / 'etc/haproxy')
    for number, name in enumerate(USERS, start=900):
        found.add_user(name, number)
    return found


@pytest.mark.parametrize(
    'function, steps',
    [
        # The note, the file, and the restart.
        ('set_up_mariadb', 3),
        ('set_up_postgresql', 4),
        ('set_up_redis', 4),
        # The file, the note, the restart, and the note of what was read.
        ('set_up_proxy', 4),
    ],
)
def test_server_reads_what_an_interrupted_run_has_written(
    root, function, steps
):
    ended = root.run(
        [], [f'bash -euo pipefail /root/run {function}'], stdin=''
    )
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count('Nothing to change.') == steps, ended.stdout
