"""The role of Ansible that runs the scripts of deploy.

WITH=ansible tools/test-deploy runs it on several nodes with systemd.
"""

import json
import os
import pathlib
import re
import sys

import pytest

from tests.support import deploy_node, deploy_scripts, requirements, sampling

ANSIBLE = deploy_scripts.ROOT / 'build/ansible'
PLAYBOOKS = deploy_scripts.DEPLOY / 'ansible'
SUITE = sampling.suite('nodes that Ansible sets up', 0)


@pytest.fixture(autouse=True)
def ansible():
    if not (ANSIBLE / 'ready').exists():
        requirements.missing('Ansible: run tools/install-ansible')


def run(name, *arguments, folder):
    return deploy_scripts.run(
        ANSIBLE / 'bin' / name,
        *arguments,
        HOME=str(folder),
        LC_ALL='C.UTF-8',
        PATH=f'{ANSIBLE}/bin:{deploy_scripts.PATH}',
    )


def test_files_have_the_usual_style(tmp_path):
    lines = '{extends: default, rules: {line-length: {max: 88}}}'
    run('yamllint', '--strict', '-d', lines, PLAYBOOKS, folder=tmp_path)
    run(
        *('ansible-lint', '--offline', '--strict', '--profile', 'production'),
        *(PLAYBOOKS / 'site.yml', PLAYBOOKS / 'roles/manila_lite'),
        folder=tmp_path,
    )


def test_example_is_an_inventory_of_the_playbook(tmp_path):
    example = PLAYBOOKS / 'inventory.example.yml'
    printed = run(
        *('ansible-playbook', '--list-hosts', '-i', example, PLAYBOOKS / 'site.yml'),
        folder=tmp_path,
    )
    hosts = [
        sorted(re.findall(r'^      (\S+)$', part, re.MULTILINE))
        for part in printed.split('play #')[1:]
    ]
    assert hosts == [
        ['control-1'],
        [f'storage-{name}' for name in ('1', '2', '3', '4', '5a', '5b')],
        ['gateway-1', 'gateway-2'],
        ['control-2'],
    ]


PLAY = r"""
export ANSIBLE_LOCALHOST_WARNING=0 LC_ALL=C.UTF-8 ANSIBLE_NOCOLOR=1
# wheels: what deploy/wheels makes, of the packages that are here.
wheels() {
    # Another one than that of /packages, which pip would take for installed.
    sed -i "s/^version *=.*/version = 9.$1/" setup.cfg
    rm -rf deploy/wheelhouse
    mkdir deploy/wheelhouse
    cp -r manila_lite etc setup.cfg pyproject.toml README.md LICENSE \
        requirements.txt /tmp/source-$1
    /tmp/venv/bin/pip wheel --quiet --no-deps --wheel-dir deploy/wheelhouse \
        "/tmp/source-$1"
    (
        cd deploy/wheelhouse
        for wheel in *.whl; do
            IFS=- read -r name version _ <<< "$wheel"
            hash=$(sha256sum "$wheel")
            echo "$name==$version --hash=sha256:${hash%% *}"
        done > requirements.txt
    )
    DEPLOY=$PWD/deploy bash -euo pipefail -c '
        source deploy/lib/all.sh
        wheel_sources > "$BUILT_FROM"'
}
play() {
    "$ANSIBLE/bin/python" "$ANSIBLE/bin/ansible-playbook" -i /root/inventory.json \
        /root/manila_lite/deploy/ansible/site.yml "$@"
}
mkdir -p /tmp/source-{1,2} deploy/ansible/.packed /root/.ansible
wheels 1
step new
touched play --check
step install
play
step again
touched play
step check again
touched play --check
step rights
stat --format '%n %U:%G %a' /etc/manila_lite/{local.conf,secrets}
echo '# another version' >> manila_lite/__init__.py
wheels 2
step would
touched play --check
step did
play
step third
touched play
ls /var/tmp
"""


@pytest.fixture
def node(tmp_path):
    with deploy_node.new(tmp_path) as found:
        yield found


# A machine may have more to do than this.
@pytest.mark.timeout(900)
@SUITE
def test_second_run_and_check_mode_change_nothing(node):
    base = pathlib.Path(os.path.realpath(ANSIBLE / 'bin/python')).parents[1]
    node.root.bind(str(ANSIBLE), str(ANSIBLE))
    if base != pathlib.Path(sys.base_prefix):
        node.root.bind(str(base))
    host = {'node': {'manila_lite_ip': '127.0.0.1', 'ansible_connection': 'local'}}
    host['node']['ansible_python_interpreter'] = f'{sys.base_prefix}/bin/python3'
    inventory = {
        'all': {'hosts': host, 'vars': {'manila_lite_conf': node.variables}},
        **{
            f'manila_lite_{name}': {'hosts': {'node': {}}}
            for name in ('controllers', 'shares', 'data')
        },
    }
    (node.root.folder / 'root/inventory.json').write_text(json.dumps(inventory))
    steps = node.run(f'ANSIBLE={ANSIBLE}\n{deploy_node.LOOK}{PLAY}')
    for name in ('new', 'again', 'check again', 'would', 'third'):
        printed = '\n'.join(steps[name])
        assert 'touched' not in printed, printed
        changed = int(re.search(r'changed=(\d+)', printed)[1])
        assert (changed > 0) == (name in ('new', 'would')), printed
    assert 'set up the role controller' in '\n'.join(steps['new'])
    assert steps['rights'] == [
        f'/etc/manila_lite/{name} root:root 600' for name in ('local.conf', 'secrets')
    ]
    would, did = ('\n'.join(steps[name]) for name in ('would', 'did'))
    for line in ('installed manila_lite into', 'restarted manila-lite-share'):
        assert line in would, would
        assert line in did, did
