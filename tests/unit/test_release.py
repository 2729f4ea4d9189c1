"""The number of the release, and the record of the one before."""

from importlib import metadata

from manila_lite import release
from manila_lite.rpc import previous


def test_the_record_is_of_the_release_before_this_one():
    assert previous.RELEASE == release.NUMBER - 1


def test_the_version_is_that_of_the_package():
    assert release.version() == metadata.version('manila_lite')
