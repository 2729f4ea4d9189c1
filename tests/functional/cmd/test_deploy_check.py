"""Scripts of deploy that only say what they would change."""

import pytest

from tests.support import deploy_node, sampling

pytestmark = [pytest.mark.timeout(900), sampling.suite('deploy --check', 0)]

CHECK = r"""
check() {
    touched "deploy/$1" --check
}
head=$(sed -n "s/^HEAD = '\(.*\)'/\1/p" manila_lite/db/schema.py)
step fresh
check controller
check share
step install
deploy/controller
deploy/share
step again
check controller
check share
step deploy, not the node
sed -i "s/^HEAD = .*/HEAD = '9999'/" manila_lite/db/schema.py
check controller | grep -v -e manila_lite-releases -e manila-lite-controller
sed -i "s/^HEAD = .*/HEAD = '$head'/" manila_lite/db/schema.py
echo '# another version' >> manila_lite/__init__.py
echo '# another unit' >> etc/manila_lite/systemd/manila-lite-share.service
cat >> deploy/local.conf <<END
API_WORKERS=2
CONTROLLERS='127.0.0.1 127.0.0.2'
BACKENDS='disk second'
SHARE_TYPE=second
END
rm /etc/logrotate.d/manila-lite
echo '# changed' >> /etc/manila_lite/credentials/share.conf
mkdir /opt/manila_lite-releases/older
for role in controller share; do
    step "$role would"
    check "$role"
    step "$role did"
    "deploy/$role"
done
step end
check controller
check share
step forgotten
sed -i 's/^put_storage$/touch \/etc\/forgotten/' deploy/share
check share
step other options
deploy/share --chekc 2>&1 || true
"""


@pytest.fixture
def node(tmp_path):
    with deploy_node.new(tmp_path) as found:
        yield found


def test_check_says_what_the_run_does_and_touches_nothing(node):
    steps = node.run(deploy_node.LOOK + CHECK)
    assert steps['fresh'] == [
        line
        for role in ('controller', 'share')
        for line in (f'set up the role {role}', 'Changes: 1. None of them was made.')
    ]
    assert steps['again'] == ['Nothing to change.'] * 2
    assert 'migrated the database' in steps['deploy, not the node']
    for role in ('controller', 'share'):
        *lines, changes = steps[f'{role} did']
        # HAProxy prints something, too.
        did = [line for line in lines if line[:1].islower()]
        assert steps[f'{role} would'] == [*did, f'{changes} None of them was made.']
        assert len(did) > 2
    assert steps['end'] == ['Nothing to change.'] * 2
    refused = '\n'.join(steps['forgotten'])
    assert "touch: cannot touch '/etc/forgotten': Read-only file system" in refused
    assert 'ended with 1' in refused
    assert steps['other options'] == ['share: the only option is --check, not --chekc']
