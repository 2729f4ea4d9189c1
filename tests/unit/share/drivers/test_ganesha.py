import pathlib

import pytest

from manila_lite import exception
from manila_lite.share.drivers import ganesha
from manila_lite.share.drivers.nfs_clients import Client


def export(path='/mounts/share', pseudo='/shares/share', clients=()):
    return ganesha.Export(7, pathlib.Path(path), pseudo, clients)


@pytest.mark.parametrize(
    'path', ['/a"b', '/a b', '/a;b', '/a\nb', '/a{b', '/ä', '', '-a']
)
def test_odd_names_are_never_written_to_a_configuration(path):
    with pytest.raises(exception.BadConfiguration):
        ganesha.safe_path(pathlib.PurePosixPath(path or ' '))
    for odd in ({'path': path}, {'pseudo': path}):
        if path:
            with pytest.raises(exception.BadConfiguration):
                ganesha.export_config(export(**odd))


def test_clients_are_in_the_given_order():
    text = ganesha.export_config(
        export(clients=[Client('10.0.0.7', 'ro'), Client('10.0.0.0/8', 'rw')])
    )
    assert text.index('10.0.0.7; Access_Type = RO') < text.index(
        '10.0.0.0/8; Access_Type = RW'
    )
    assert text.count('{') == text.count('}')


def test_server_that_does_not_answer_is_an_error_of_the_back_end(tmp_path):
    server = ganesha.Ganesha(tmp_path / 'no-socket', timeout=0.0)
    assert not server.is_answering()
    with pytest.raises(exception.ShareBackendException, match='not answer'):
        server.numbers()
