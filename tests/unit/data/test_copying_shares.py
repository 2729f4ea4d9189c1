import os
import shutil

import pytest

from manila_lite import exception
from manila_lite.data.copying import ShareContents
from manila_lite.data.mounts import CephMounts
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import ConnectionsRpc
from manila_lite.share.drivers.contract.connections import identity_of
from manila_lite.work import job as jobs, lease
from tests.support.direct_transport import DirectTransport
from tests.unit.work.builders import claim, submit_work


@implements(ConnectionsRpc)
class Share:
    """A share service that answers with these."""

    info = {}
    seen = 0

    def get_connection(self, ctx, instance_id, fence=0):
        if fence < self.seen:
            raise exception.StaleFencingToken(resource=instance_id, seen=self.seen)
        return self.info

    def end_connection(self, ctx, instance_id, fence=0):
        raise AssertionError('directories need no end')


@pytest.fixture
def share():
    return Share()


@pytest.fixture
def job(db):
    claimed = claim(db, submit_work(db, resource_id='share'))
    clock = lease.boot_time
    return jobs.JobContext(db, claimed, jobs.Settings(), lease.Lease(60, clock))


@pytest.fixture
def contents(share, tmp_path):
    transport = DirectTransport()
    transport.serve('manila-share', 'node@one', [share])
    return ShareContents(
        Client(ConnectionsRpc, None, transport), CephMounts(tmp_path / 'mounts')
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'share'
    folder.mkdir()
    (folder / 'file').write_text('x')
    return folder


@pytest.fixture
def opened(contents, job):
    return lambda: contents.opened(job, 'an-id', 'node@one#pool')


@pytest.fixture
def refusal(opened):
    def refuse():
        with pytest.raises(exception.ContentUnreachable) as error, opened():
            pass
        return str(error.value)

    return refuse


def test_a_directory_of_this_machine_is_opened(share, opened, folder):
    share.info = {'directory': identity_of(folder)}
    with opened() as top:
        assert os.listdir(top) == ['file']
    with pytest.raises(OSError, match='Bad file descriptor'):
        os.fstat(top)


def test_a_directory_of_another_machine_is_refused(share, refusal, folder):
    share.info = {'directory': {**identity_of(folder), 'boot_id': 'other'}}
    assert str(folder) in refusal()


def test_another_directory_at_the_path_is_refused(share, refusal, folder):
    share.info = {'directory': identity_of(folder)}
    folder.rename(folder.with_name('old'))
    assert 'an-id' in refusal()
    folder.symlink_to(folder.with_name('old'))
    assert 'node@one' in refusal()
    folder.unlink()
    shutil.copytree(folder.with_name('old'), folder)
    assert 'node@one' in refusal()


def test_a_share_that_must_be_mounted_in_another_way_is_refused(share, refusal):
    share.info = {'mount': 'mount -vt nfs %(export)s %(path)s'}
    assert 'no way that this release knows' in refusal()


def test_a_connection_is_asked_for_again_if_the_clock_was_set_back(
    share, opened, job, folder
):
    share.info, share.seen = {'directory': identity_of(folder)}, job.claim.fence + 10
    with opened() as top:
        assert os.listdir(top) == ['file']
    assert job.claim.fence > share.seen
