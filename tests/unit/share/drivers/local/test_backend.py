"""Where clients find what a file server exports."""

import pytest

from manila_lite.share.drivers import capabilities
from tests.drivers.driver_harness import CTX
from tests.support import requirements
from tests.unit.share.drivers.local.local_driver import make, start


def start_serving(root, host):
    """Start a driver whose users are on other machines."""
    if host and capabilities.missing(capabilities.FOR_FILES_OF_USERS):
        requirements.missing('only root has the privileges of a file server')
    return start(root, local_export_host=host)


def path_in(locations):
    (location,) = locations
    return location['path']


@pytest.mark.parametrize(
    'host, prefix',
    [
        (None, ''),
        ('files.example', 'files.example:'),
        ('2001:db8::1', '[2001:db8::1]:'),
    ],
)
def test_nfs_location_names_the_host_and_the_directory(root, host, prefix):
    driver = start_serving(root, host)
    share = make.share()
    expected = f'{prefix}{root}/shares/{share["name"]}/data'
    assert path_in(driver.create_share(CTX, share)) == expected
    status = driver.get_share_status(share)
    assert path_in(status['export_locations']) == expected
    snapshot = make.snapshot(share)
    assert (
        path_in(driver.create_snapshot(CTX, snapshot)['export_locations'])
        == f'{prefix}{root}/snapshots/{snapshot["name"]}/data'
    )


def test_cifs_location_names_the_host_and_the_section(root):
    driver = start_serving(root, 'files.example')
    share = make.share(share_proto='CIFS')
    assert path_in(driver.create_share(CTX, share)) == (
        rf'\\files.example\{share["name"]}'
    )


@pytest.mark.parametrize('protocol', ['NFS', 'CIFS'])
def test_share_is_managed_by_the_location_that_it_had(root, protocol):
    driver = start_serving(root, 'files.example')
    share = make.share(share_proto=protocol)
    location = path_in(driver.create_share(CTX, share))
    driver.unmanage(share)
    again = make.at(location, share_proto=protocol)
    driver.manage_existing(again, {})
    assert driver.get_share_status(again)['status'] == 'available'
