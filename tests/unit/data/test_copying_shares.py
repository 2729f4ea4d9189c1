import os
import shutil

import pytest

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.data.copying import ShareContents
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import ConnectionsRpc
from manila_lite.share.drivers.contract.connections import identity_of
from tests.support.direct_transport import DirectTransport


@implements(ConnectionsRpc)
class Share:
    """A share service that answers with these."""

    info = {}

    def get_connection(self, ctx, instance_id):
        return self.info


@pytest.fixture
def share():
    return Share()


@pytest.fixture
def contents(share):
    transport = DirectTransport()
    transport.serve('manila-share', 'node@one', [share])
    return ShareContents(Client(ConnectionsRpc, None, transport))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'share'
    folder.mkdir()
    (folder / 'file').write_text('x')
    return folder


def opened(contents):
    return contents.opened(RequestContext(), 'an-id', 'node@one#pool')


def refusal(contents):
    with pytest.raises(exception.ContentUnreachable) as error, opened(contents):
        pass
    return str(error.value)


def test_a_directory_of_this_machine_is_opened(share, contents, folder):
    share.info = {'directory': identity_of(folder)}
    with opened(contents) as top:
        assert os.listdir(top) == ['file']
    with pytest.raises(OSError, match='Bad file descriptor'):
        os.fstat(top)


def test_a_directory_of_another_machine_is_refused(share, contents, folder):
    share.info = {'directory': {**identity_of(folder), 'boot_id': 'other'}}
    assert str(folder) in refusal(contents)


def test_another_directory_at_the_path_is_refused(share, contents, folder):
    share.info = {'directory': identity_of(folder)}
    folder.rename(folder.with_name('old'))
    assert 'an-id' in refusal(contents)
    folder.symlink_to(folder.with_name('old'))
    assert 'node@one' in refusal(contents)
    folder.unlink()
    shutil.copytree(folder.with_name('old'), folder)
    assert 'node@one' in refusal(contents)


def test_a_share_that_must_be_mounted_is_refused(share, contents):
    share.info = {'mount': 'mount -vt nfs %(export)s %(path)s'}
    assert 'mounts no shares' in refusal(contents)
