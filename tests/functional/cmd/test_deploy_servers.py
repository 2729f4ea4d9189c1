"""Servers that deploy configures, in runs that end at every step.

The files are written by the scripts, in a root of their own; the servers are
only noted to have read them.
"""

import re
import shutil

import pytest

from tests.support import clean_root, deploy_scripts, sampling

USERS = ('haproxy', 'postgres', 'redis')
# Each ends the script after it has done the step of this number.
STEP = """
echo >> /root/steps
if [[ $(wc -l < /root/steps) == "$(< /root/last)" ]]; then
    kill -KILL "$(< /root/pid)"
fi
"""


def program(path):
    return f'#!/bin/bash -eu\n{path} "$@"\n{STEP}'


# A restarted server reads all its files, a reloaded HAProxy no options.
SYSTEMCTL = f"""#!/bin/bash -eu
echo "$*" >> /root/called
case $1 in
    restart)
        /bin/rm -rf /read
        cp -rT /etc /read
        ;;
    reload) cp -rT /etc/haproxy /read/haproxy ;;
    disable) /bin/rm /etc/mysql/socket.enabled ;;
    --quiet)
        if [[ $* == *"is-enabled mariadb.socket" ]]; then
            exec test -e /etc/mysql/socket.enabled
        fi
        exit 0
        ;;
    *) exit 0 ;;
esac
{STEP}"""
SET_UP = """
echo $$ > /root/pid
export DEPLOY=/root/manila_lite/deploy LOCAL_CONF=/root/local.conf
source "$DEPLOY/lib/all.sh"
CHECK=${2:-no}
require_root
read_variables
mkdir -p "$ETC"
DATABASE_PASSWORD=a BROKER_PASSWORD=b LOCKS_PASSWORD=c
CONTROLLER_DATABASE_PASSWORD=d NODE_DATABASE_PASSWORD=e NODE_BROKER_PASSWORD=f
use_servers
use_identity
"$1"
report_changes
"""
RUN = r"""
cp -rT /etc /root/etc
step=1
while true; do
    /bin/rm -rf /etc/{manila_lite,mysql,postgresql,redis,haproxy,systemd}
    cp -rT /root/etc /etc
    /bin/rm -rf /read
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
CHECK = r"""
echo 0 > /root/last
mkdir /etc/manila_lite
cp -rT /etc /root/before
bash -euo pipefail /root/set_up "$1" yes > /root/would
diff -r --no-dereference /etc /root/before
if grep -v -- --quiet /root/called; then
    exit 1
fi
bash -euo pipefail /root/set_up "$1" > /root/did
diff /root/would /root/did || true
"""
CLOSE = r"""
cp -rT /etc /root/before
echo 0 > /root/last
bash -euo pipefail /root/set_up "$1" > /dev/null
cp -rT /etc /root/etc
step=1
while true; do
    /bin/rm -rf /etc/{manila_lite,mysql,postgresql,redis,systemd} /read
    cp -rT /root/etc /etc
    cp -rT /etc /read
    echo "$step" > /root/last
    : > /root/steps
    if bash -euo pipefail /root/set_up "$2" > /dev/null; then
        break
    fi
    echo 0 > /root/last
    bash -euo pipefail /root/set_up "$2" > /dev/null
    for name in mysql postgresql redis; do
        diff -r "/etc/$name" "/read/$name"
        diff -r -x socket.enabled "/etc/$name" "/root/before/$name"
    done
    find /etc/systemd /etc/manila_lite -type f -printf 'left %p\n'
    bash -euo pipefail /root/set_up "$2"
    step=$((step + 1))
done
"""


@pytest.fixture
def root(tmp_path):
    clean_root.require_namespaces()
    found = clean_root.CleanRoot(tmp_path / 'root')
    found.add_deploy()
    for name, text in (
        ('mv', program('/bin/mv')),
        ('systemctl', SYSTEMCTL),
        # The accounts exist.
        ('mariadb', '#!/bin/true\n'),
        ('psql', '#!/bin/true\n'),
    ):
        found.add_program(name, text)
    for name, text in (
        ('etc/default/haproxy', ''),
        ('etc/mysql/mariadb.conf.d/50-server.cnf', ''),
        ('etc/mysql/socket.enabled', ''),
        ('etc/postgresql/15/main/conf.d/other.conf', ''),
        ('etc/postgresql/15/main/pg_hba.conf', ''),
        ('etc/redis/redis.conf', ''),
        ('root/local.conf', ''),
        ('root/set_up', SET_UP),
        ('root/run', RUN),
        ('root/check', CHECK),
        ('root/called', ''),
        ('root/close', CLOSE),
    ):
        path = found.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree('/etc/haproxy', found.folder / 'etc/haproxy')
    for number, name in enumerate(USERS, start=900):
        found.add_user(name, number)
    return found


set_ups = sampling.suite('servers that deploy sets up', 3)


@set_ups
@pytest.mark.parametrize(
    'function, steps',
    [
        # The note, the file, the note, the socket, and the restart.
        ('set_up_mariadb', 5),
        # A note more for each account of services.
        ('set_up_postgresql', 6),
        ('set_up_redis', 4),
        # The file, the note, the drop-in, the restart, and the note of what
        # was read.
        ('set_up_proxy', 5),
    ],
)
def test_server_reads_what_an_interrupted_run_has_written(root, function, steps):
    ended = root.run([], [f'bash -euo pipefail /root/run {function}'], stdin='')
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count('Nothing to change.') == steps, ended.stdout


@pytest.mark.parametrize('name', ['mariadb', 'postgresql', 'redis', 'proxy'])
def test_check_says_what_a_set_up_does_and_touches_nothing(root, name):
    ended = root.run([], [f'bash -euo pipefail /root/check set_up_{name}'], stdin='')
    assert ended.returncode == 0, ended.stdout
    differences = re.findall('^[<>] .*', ended.stdout, re.MULTILINE)
    made = re.fullmatch(r'< (Changes: \d+\.) None of them was made\.', differences[0])
    assert made, ended.stdout
    assert differences[1:] == [f'> {made[1]}'], ended.stdout


@set_ups
@pytest.mark.parametrize(
    'name, steps',
    [
        # The note, the file, the restart, and the end of the note.
        ('mariadb', 4),
        # The drop-in; the note, three accounts and the file; the restart. Of
        # two accounts, the note as well.
        ('postgresql', 11),
        # The drop-in; the note, the line and the file; the restart.
        ('redis', 7),
    ],
)
def test_removed_node_has_servers_as_before(root, name, steps):
    root.add_program('rm', program('/bin/rm'))
    address = '192.0.2.11'
    (root.folder / 'root/local.conf').write_text(
        f'NODE_IP={address}\nCONTROLLERS={address}\nINTERNAL_TLS=no\n'
    )
    ended = root.run(
        [], [f'bash -euo pipefail /root/close set_up_{name} close_{name}'], stdin=''
    )
    assert ended.returncode == 0, ended.stdout
    assert 'left' not in ended.stdout, ended.stdout
    assert ended.stdout.count('Nothing to change.') == steps, ended.stdout


BROKER = """
systemctl() {
    case $* in
        '--quiet is-active'*) [[ -e $STATE_OF_UNIT ]] ;;
        disable*)
            echo "systemctl $*"
            rm "$STATE_OF_UNIT"
            ;;
        *)
            echo "systemctl $*"
            touch "$STATE_OF_UNIT"
            ;;
    esac
}
rabbitmqctl() {
    :
}
SERVERS=$FOLDER/servers
STATE_OF_UNIT=$FOLDER/active
touch "$SERVERS"
"""


def test_broker_that_did_not_run_before_is_stopped(tmp_path):
    def shell(lines):
        return deploy_scripts.shell(
            BROKER + lines, '', tmp_path, FOLDER=str(tmp_path)
        ).splitlines()

    stopped = ['systemctl disable --now rabbitmq-server', 'stopped rabbitmq-server']
    lines = 'note_stopped rabbitmq-server; systemctl start rabbitmq-server;'
    # The second run finds it running.
    assert shell(f'{lines} {lines} close_rabbitmq')[2:] == stopped
    assert shell('close_rabbitmq') == []
    # A later purge needs it for a moment.
    started = ['systemctl start rabbitmq-server']
    assert shell('purge_broker; close_rabbitmq') == started + stopped
    (tmp_path / 'active').touch()
    (kept,) = shell(f'{lines} purge_broker; close_rabbitmq')[1:]
    assert kept.startswith('Kept rabbitmq-server running')
