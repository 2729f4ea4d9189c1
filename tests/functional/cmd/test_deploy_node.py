"""A node that the scripts of deploy set up, change, upgrade and remove."""

import pathlib
import re

import pytest

from tests.support import certificates, deploy_node, sampling

# A machine may have more to do than this.
pytestmark = [pytest.mark.timeout(900), sampling.suite('nodes that deploy sets up', 0)]


@pytest.fixture
def node(tmp_path):
    with deploy_node.new(tmp_path) as found:
        yield found


CHANGE = r"""
step install
deploy/controller
step again
deploy/controller

# As earlier versions did, with settings of the operator.
systemctl disable --now manila-lite-controller
rm /etc/systemd/system/manila-lite-controller.service
for name in api scheduler; do
    cp etc/manila_lite/systemd/manila-lite-$name.service /etc/systemd/system
    cp /etc/manila_lite/credentials/{controller,$name}.conf
done
mkdir /etc/systemd/system/manila-lite-api.service.d
touch /etc/systemd/system/manila-lite-api.service.d/own.conf
systemctl enable --now manila-lite-scheduler manila-lite-api
echo API_WORKERS=2 >> deploy/local.conf
echo "CONTROLLERS='127.0.0.1 127.0.0.2'" >> deploy/local.conf
step change
deploy/controller
step processes
# `ps` would list those of the machine.
cat /proc/[0-9]*/comm | sort | grep -E '^(api|scheduler)'
readlink /etc/systemd/system/manila-lite-api.service
ls /etc/systemd/system/manila-lite-api.service.d

step no certificate
echo 'TLS_CERTIFICATE=/root/nowhere.pem' >> deploy/local.conf
if deploy/controller; then
    exit 1
fi
step the proxy goes on
curl --silent --output /dev/null --write-out '%{http_code}\n' \
    http://127.0.0.1:8786/healthcheck
grep -c nowhere.pem /etc/haproxy/manila_lite.cfg || true
"""

TLS = r"""
echo TLS_CERTIFICATE=/root/server.pem >> deploy/local.conf
step without the CA
if deploy/controller; then
    exit 1
fi
echo TLS_CACERT=/root/ca.pem >> deploy/local.conf
step with the CA
deploy/controller
step again
deploy/controller
step client
source /etc/manila_lite/admin-openrc
curl --silent --show-error --cacert "$OS_CACERT" --output /dev/null \
    --write-out '%{http_code}\n' "$OS_AUTH_URL"
# It is not the service's own, which could replace it.
stat --format '%U:%G %a' "$OS_CACERT"
"""

REMOVE = r"""
step install
deploy/share
for path in "${FAILING[@]}"; do
    echo "$path" > /root/failing
    if deploy/remove; then
        exit 1
    fi
done
rm /root/failing
step remove
deploy/remove --purge
step remove again
deploy/remove --purge
step left
# State and shares may have files that are nowhere else.
find /etc /opt /var -name '*manila*' -not -path /var/lib/manila
"""
# Nothing of it is on the command line or in the environment of a process.
CREDENTIALS = r"""
etc=/etc/manila_lite
# As an earlier version, with all options in one file.
cp -r etc/manila_lite/systemd /root/units
sed -i -e '/Credential=/d' -e 's/--config-file [$][^ ]* //' \
    etc/manila_lite/systemd/*.service
step old
deploy/controller
deploy/share
step old files
grep -rl 'mysql+pymysql' "$etc" | sort
stat --format '%n %U:%G %a' "$etc/token_key"
rm -r etc/manila_lite/systemd
mv /root/units etc/manila_lite/systemd
step controller
deploy/controller
step still needed
grep -c '^connection' "$etc/manila_lite.conf"
step share
deploy/share
step again
deploy/controller
deploy/share
step files
(
    source "$etc/secrets"
    printf '%s\n' "$TOKEN_KEY" 'mysql+pymysql' 'nobody@127.0.0.1'
) > /root/words
grep -rlF -f /root/words "$etc" | sort | xargs stat --format '%n %U:%G %a'
step credentials
find /run/credentials -type f -printf '%p %u %m\n' | sort
step key
for name in controller share; do
    grep -c '^token_key' /run/credentials/manila-lite-$name.service/secrets.conf || true
done
step other user
runuser -u haproxy -- cat /run/credentials/*/* $etc/credentials/* 2>&1 \
    | grep -c 'Permission denied' || true
step public
cat /proc/[0-9]*/{cmdline,environ} /var/log/manila/* 2> /dev/null \
    | grep -acF -f /root/words || true
grep -rlF -f /root/words /etc/systemd || true
step root
/opt/manila_lite/bin/manila-lite-manage service list | awk '{print $1}' | sort -u
find /var/lib/manila /var/log/manila -not -user manila
step service
runuser -u manila -- /opt/manila_lite/bin/manila-lite-manage service list 2>&1 || true
step rollback
deploy/rollback
grep -c '^connection' "$etc/manila_lite.conf"
step forward
deploy/rollback
grep -c '^connection' "$etc/manila_lite.conf" || true
step secret
echo EXTRA_SECRETS=/root/extra >> deploy/local.conf
printf '[disk]\nmax_over_subscription_ratio = 1.5\n' > /root/extra
deploy/share
"""

PASSWORDS = r"""
# Some of the operator's, some that are made.
mkdir /etc/manila_lite
echo "ADMIN_PASSWORD=own-word" > /etc/manila_lite/secrets
chmod 600 /etc/manila_lite/secrets
step install
deploy/controller
cp /etc/manila_lite/secrets /root/secrets
(
    source /root/secrets
    while IFS='=' read -r name _; do
        printf '%s\n' "${!name}"
    done < /root/secrets
) > /root/words
touch /etc/manila_lite/own-file
step with passwords
grep -rlF -f /root/words /etc/manila_lite
# What an interrupted run and an editor leave.
cp /etc/manila_lite/secrets /etc/manila_lite/secrets~
cp /etc/manila_lite/secrets /etc/manila_lite/manila_lite.conf.aB3dE6gH~
step remove
deploy/remove
step remove again
deploy/remove
step left
ls /etc/manila_lite /var/lib/manila/users
grep -rlF -f /root/words /etc /opt /var /srv || true
step install again
deploy/controller
step again
deploy/controller
step sign in
if cmp --quiet /root/secrets /etc/manila_lite/secrets; then
    exit 1
fi
grep -c '^admin:' /var/lib/manila/users
"""
# Fails for one path.
RM = """#!/bin/bash
for word; do
    if [[ -e /root/failing && $word == "$(< /root/failing)" ]]; then
        echo "rm: cannot remove $word" >&2
        exit 1
    fi
done
exec /usr/bin/rm "$@"
"""
FAILING = (
    '/etc/systemd/system/manila-lite-share.service',
    '/etc/manila_lite/manila_lite.conf',
    '/opt/manila_lite-releases',
)

UPGRADE = r"""
step install
deploy/share
step again
deploy/share
step first
readlink /opt/manila_lite
first=$(share)

echo '# another version' >> manila_lite/__init__.py
mkdir /opt/manila_lite-releases/older
step upgrade
deploy/share
test "$(share)" != "$first"
step second
readlink /opt/manila_lite /opt/manila_lite-releases/previous
# Started from its own directory, which no other version replaces.
tr '\0' '\n' < "/proc/$(share)/cmdline" | head -1

second=$(share)
step rollback
deploy/rollback
test "$(share)" != "$second"
step third
readlink /opt/manila_lite /opt/manila_lite-releases/previous
ls /opt/manila_lite-releases
"""


def test_versions_stand_beside_each_other(node):
    steps = node.run(UPGRADE)
    assert steps['again'] == ['Nothing to change.']
    (first,) = steps['first']
    assert re.fullmatch(r'/opt/manila_lite-releases/[\d.]+-[0-9a-f]{12}', first)
    second, previous, python = steps['second']
    assert (previous, second == first) == (first, False)
    assert python.startswith(f'{second}/bin/python')
    assert steps['upgrade'] == [
        f'installed manila_lite into {second}',
        f'switched to {second}',
        'restarted manila-lite-share',
        'removed /opt/manila_lite-releases/older',
        'Changes: 4.',
    ]
    assert 'restarted manila-lite-share' in steps['rollback']
    assert steps['third'][:2] == [first, second]
    assert sorted(steps['third'][2:]) == sorted(
        ['previous', *(pathlib.Path(path).name for path in (first, second))]
    )


def test_passwords_are_for_the_service_that_needs_them(node):
    steps = node.run(CREDENTIALS)
    etc, units = '/etc/manila_lite', '/run/credentials/manila-lite-'
    only_root = [
        f'{etc}/credentials/controller.conf root:root 600',
        f'{etc}/credentials/share.conf root:root 600',
        f'{etc}/manila-lite-manage.conf root:root 600',
    ]
    assert steps['old files'] == [
        *(line.split()[0] for line in only_root),
        f'{etc}/manila_lite.conf',
        f'{etc}/token_key manila:manila 600',
    ]
    assert f'wrote {etc}/manila_lite.conf' not in steps['controller']
    assert steps['still needed'] == ['1']
    assert steps['share'][-4:-1] == [
        'restarted manila-lite-share',
        f'wrote {etc}/manila_lite.conf',
        f'removed {etc}/token_key',
    ]
    assert steps['again'] == ['Nothing to change.'] * 2
    assert steps['files'] == [*only_root, f'{etc}/secrets root:root 600']
    assert steps['credentials'] == [
        f'{units}{name}.service/secrets.conf manila 400'
        for name in ('controller', 'share')
    ]
    assert steps['key'] == ['1', '0']
    assert steps['other user'] == ['4']
    assert steps['public'] == ['0']
    assert steps['root'] == ['binary', 'manila-scheduler', 'manila-share']
    (refused,) = steps['service']
    assert 'manila-lite-manage.conf' in refused
    assert steps['rollback'][-1] == '1'
    assert {
        'restarted manila-lite-controller',
        'restarted manila-lite-share',
        f'wrote {etc}/token_key',
    } <= {*steps['rollback']}
    assert steps['forward'][-1] == '0'
    # The next run of `deploy/controller` restarts its service.
    assert steps['secret'] == [
        f'wrote {etc}/credentials/controller.conf',
        f'wrote {etc}/credentials/share.conf',
        f'wrote {etc}/manila-lite-manage.conf',
        'restarted manila-lite-share',
        'Changes: 4.',
    ]


def test_controller_is_changed_while_it_serves(node):
    steps = node.run(CHANGE)
    assert steps['again'] == ['Nothing to change.']
    units = '/etc/systemd/system'
    # HAProxy prints something, too.
    changes = [line for line in steps['change'] if line[:1].islower()]
    assert changes == [
        f'removed {units}/manila-lite-api.service',
        f'removed {units}/manila-lite-scheduler.service',
        f'wrote {units}/manila-lite-controller.service',
        'started manila-lite-controller',
        'wrote /etc/haproxy/manila_lite.cfg',
        # Connections go on.
        'reloaded haproxy',
    ]
    assert steps['processes'] == [
        *('api 1', 'api 2', 'scheduler'),
        f'{units}/manila-lite-controller.service',
        'own.conf',
    ]
    refused = '\n'.join(steps['no certificate'])
    assert 'manila_lite.cfg is not changed, as HAProxy refuses' in refused
    assert steps['the proxy goes on'] == ['200', '0']


def test_controller_has_a_certificate_of_a_private_ca(node):
    certificates.make(node.root.folder / 'root')
    steps = node.run(TLS)
    refused = '\n'.join(steps['without the CA'])
    assert 'or by the one that TLS_CACERT names' in refused
    assert 'wrote /etc/manila_lite/cacert.pem' in steps['with the CA']
    assert steps['again'] == ['Nothing to change.']
    assert steps['client'] == ['200', 'root:manila 644']


def test_removal_is_repeated_after_it_has_failed(node):
    node.root.add_program('rm', RM)
    node.add_conf('[DEFAULT]\nreport_interval = 1\nservice_down_time = 5\n')
    steps = node.run(f'FAILING=({" ".join(FAILING)})\n{REMOVE}')
    assert 'removed /opt/manila_lite-releases' in steps['remove']
    assert steps['remove again'][-1] == 'Nothing to change.'
    assert steps['left'] == []


def test_removed_node_has_no_passwords(node):
    node.add_conf('[DEFAULT]\nreport_interval = 1\nservice_down_time = 5\n')
    steps = node.run(PASSWORDS)
    etc = '/etc/manila_lite'
    assert sorted(steps['with passwords']) == [
        f'{etc}/{name}'
        for name in (
            'admin-openrc',
            'credentials/controller.conf',
            'manila-lite-manage.conf',
            'node-secrets',
            'secrets',
        )
    ]
    assert steps['remove again'][-1] == 'Nothing to change.'
    assert steps['left'] == [
        '/var/lib/manila/users',
        '',
        '/etc/manila_lite:',
        # Of the operator, and a mark for --purge.
        'own-file',
        'servers',
    ]
    # It has signed in to make the first share type.
    assert 'set the password of admin' in steps['install again']
    assert steps['again'] == ['Nothing to change.']
    assert steps['sign in'] == ['1']
