"""What the Ceph user of a back end needs, and what is said if it lacks it."""

import contextlib
import json
import re
import shlex

import pytest

from manila_lite import exception
from manila_lite.share.drivers.cephfs.gateway import Gateway
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support
from tests.support.nfs_gateways import caps
from tests.unit.share.drivers.cephfs.sites import new_harness

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

ALL = {
    'mon': 'allow r',
    'mgr': 'allow rw',
    'osd': 'allow rw pool=data namespace=manila_lite',
}
LACKING = {
    'mon': {'mon': ''},
    'mgr': {'mgr': ''},
    'mgr, only reading': {'mgr': 'allow r'},
    'osd': {'osd': ''},
    'osd, only reading': {'osd': 'allow r pool=data namespace=manila_lite'},
    'osd, another namespace': {'osd': 'allow rw pool=data namespace=another'},
}


def _harness(cluster, user):
    return new_harness(
        cluster, cephfs_auth_id=user.name, cephfs_keyring_path=str(user.keyring)
    )


@pytest.mark.parametrize('lacking', LACKING)
def test_missing_capability_is_named_with_the_command_that_gives_it(ceph, lacking):
    caps = {kind: cap for kind, cap in (ALL | LACKING[lacking]).items() if cap}
    with ceph.user(**caps) as user:
        harness = _harness(ceph, user)
        with pytest.raises(exception.BadConfiguration) as caught:
            harness.start()
    kind = lacking.partition(',')[0]
    assert f'lacks a capability for "{kind}"' in str(caught.value)
    command = re.search('ceph (auth caps .*)', str(caught.value))
    assert shlex.split(command[1])[:3] == ['auth', 'caps', f'client.{user.name}']


@pytest.mark.parametrize(
    'given',
    [
        {'mds': 'allow *'},
        {'osd': f'{ALL["osd"]}, allow r pool=data namespace=manila_lite_nfs'},
    ],
    ids=['reads no state of gateways', 'evicts no gateway'],
)
def test_driver_with_gateways_needs_more(ceph, given):
    with ceph.user(**(ALL | given)) as user:
        harness = new_harness(
            ceph,
            cephfs_auth_id=user.name,
            cephfs_keyring_path=str(user.keyring),
            cephfs_nfs_gateways=['192.0.2.1'],
        )
        with pytest.raises(exception.BadConfiguration) as caught:
            harness.start()
        grant(ceph, caught.value)
        harness.start()


@pytest.mark.parametrize('kind', ['mon', 'osd', 'osd, only the records'])
def test_gateway_names_the_command_that_gives_it_what_it_lacks(ceph, kind, tmp_path):
    lacking = caps() | {kind.partition(',')[0]: ''}
    if 'records' in kind:
        lacking['osd'] = 'allow r pool=data namespace=manila_lite'
    with ceph.user(**{name: cap for name, cap in lacking.items() if cap}) as user:
        configuration = Configuration.from_values(
            ceph.options(
                cephfs_nfs_auth_id=user.name,
                cephfs_nfs_keyring_path=str(user.keyring),
                cephfs_nfs_gateways=['192.0.2.1'],
            )
        )
        gateway = Gateway(configuration, '192.0.2.1', tmp_path, 2049)
        with pytest.raises(exception.BadConfiguration) as caught:
            gateway.check()
        grant(ceph, caught.value)
        gateway.check()


def grant(cluster, error):
    """Carry out the command that an error names."""
    text = str(error).replace('POOL', 'data')  # it may not be known
    command = re.search('ceph auth caps (.*)', text)
    entity, *words = shlex.split(command[1])
    with contextlib.suppress(json.JSONDecodeError):  # it says nothing
        cluster.admin.mon('auth caps', entity=entity, caps=words)


@pytest.mark.parametrize('kind', ['mgr', 'osd'])
def test_capability_that_was_lost_and_given_back_needs_no_restart(ceph, kind):
    def give(caps):
        words = [word for cap in caps.items() for word in cap]
        with contextlib.suppress(json.JSONDecodeError):  # it says nothing
            ceph.admin.mon('auth caps', entity=f'client.{user.name}', caps=words)

    with ceph.user(**ALL) as user:
        driver = _harness(ceph, user).start()
        give({name: cap for name, cap in ALL.items() if name != kind})
        driver.backend.cluster.close()  # Ceph tells a connection nothing
        with pytest.raises(exception.DriverError):
            driver.check_health()
        give(ALL)
        driver.check_health()


def test_the_named_capabilities_suffice(ceph):
    with ceph.user(**ALL) as user:
        harness = _harness(ceph, user)
        driver = harness.start()
        share = harness.share()
        driver.create_share(CTX, share)
        rule = harness.rule(share, '10.0.0.1')
        (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
        assert reply['state'] == 'active'
        snapshot = harness.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        clone = harness.share()
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        driver.get_share_stats(refresh=True)
        driver.check_health()
        driver.apply_access(CTX, share, [], [], [rule])
        harness.clean_up()


def test_key_that_is_rotated_is_refused_until_the_keyring_has_it(ceph):
    """A connection outlives it until its tickets expire; another is refused."""
    with ceph.user(**ALL) as user:
        driver = _harness(ceph, user).start()
        key = _rotate(ceph, user)
        driver.backend.cluster.close()
        with pytest.raises(exception.DriverError, match='refused the connection'):
            driver.check_health()
        user.keyring.write_text(f'[client.{user.name}]\nkey = {key}\n')
        driver.check_health()


def _rotate(cluster, user) -> str:
    """Give a user another key, as `ceph auth rotate` does from release 18 on."""
    with contextlib.suppress(json.JSONDecodeError):  # it says nothing
        cluster.admin.mon('auth rm', entity=f'client.{user.name}')
    words = [word for cap in ALL.items() for word in cap]
    (found,) = cluster.admin.mon(
        'auth get-or-create', entity=f'client.{user.name}', caps=words
    )
    return found['key']


def test_key_that_is_wrong_is_refused_with_a_reason(ceph):
    keyring = ceph.keyring('admin', 'AQAdqAprWYxKGBAA3zqIdDpGCy2KQPCmvwex+Q==')
    harness = new_harness(ceph, cephfs_keyring_path=str(keyring))
    with pytest.raises(exception.DriverError, match='its key is wrong'):
        harness.start()


@pytest.mark.parametrize(
    'options, said',
    [
        ({'cephfs_filesystem_name': 'none'}, 'none does not exist.* has cephfs'),
        ({'cephfs_data_pool': 'none'}, 'none is not one of cephfs, which has data'),
    ],
)
def test_option_that_names_nothing_is_refused(ceph, options, said):
    with pytest.raises(exception.BadConfiguration, match=said):
        new_harness(ceph, **options).start()
