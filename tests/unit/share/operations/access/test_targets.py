import pytest

from manila_lite import exception
from manila_lite.share.operations.access.targets import ACCESS_TYPES, normalise


@pytest.mark.parametrize(
    'given, normal',
    [
        ('10.0.0.1', '10.0.0.1'),
        ('10.0.0.1/32', '10.0.0.1'),
        ('10.0.0.0/24', '10.0.0.0/24'),
        ('10.0.0.0/255.255.255.0', '10.0.0.0/24'),
        ('0.0.0.0/0', '0.0.0.0/0'),
        ('2001:DB8:0:0::1', '2001:db8::1'),
        ('2001:db8::1/128', '2001:db8::1'),
        ('2001:db8:0::/48', '2001:db8::/48'),
        ('::/0', '::/0'),
        ('::ffff:10.0.0.1', '10.0.0.1'),
        ('::FFFF:a00:1', '10.0.0.1'),
        ('0:0:0:0:0:ffff:10.0.0.0/120', '10.0.0.0/24'),
        ('::ffff:0:0/96', '0.0.0.0/0'),
        ('::fffe:0:0/95', '::fffe:0:0/95'),
        ('::10.0.0.1', '::a00:1'),
    ],
)
def test_client_or_network_has_one_normal_form(given, normal):
    assert normalise('ip', given) == normal


@pytest.mark.parametrize(
    'given',
    [
        '',
        'host',
        '10.0.0',
        '10.0.0.256',
        '10.0.0.1/24',
        '10.0.0.0/33',
        '10.0.0.0/-1',
        '10.0.0.0/',
        ' 10.0.0.1',
        '10.0.0.1\n',
        '010.0.0.1',
        '10.2.0.0/016',
        '10.0.0.0/255.255.255.000',
        '0.0.0.0/00',
        '2001:db8::/032',
        '2001:db8::1/64',
        '2001:db8::/129',
        'fe80::1%eth0',
        '\uff11.0.0.1',
    ],
)
def test_malformed_address_or_host_bits_are_refused(given):
    with pytest.raises(exception.InvalidShareAccess):
        normalise('ip', given)


def test_older_versions_have_no_ipv6():
    assert normalise('ip', '10.0.0.1', ipv6=False) == '10.0.0.1'
    for given in ('2001:db8::1', '::ffff:10.0.0.1'):
        with pytest.raises(exception.InvalidShareAccess):
            normalise('ip', given, ipv6=False)


@pytest.mark.parametrize(
    'given', ['root', 'a' * 255, 'DOMAIN.user', 'two words', 'jos\xe9', '4444']
)
def test_users(given):
    assert normalise('user', given) == given


@pytest.mark.parametrize(
    'given',
    [
        'bob',
        'a' * 256,
        '....',
        '. . .',
        'dom\\user',
        'a;rm -r',
        'what?',
        'line\nbreak',
        'tab\tbed',
        'quo"ted',
        'a/bcd',
        'a[bc]',
    ],
)
def test_invalid_user_names(given):
    with pytest.raises(exception.InvalidShareAccess):
        normalise('user', given)


@pytest.mark.parametrize(
    'given, normal',
    [
        ('client.example', 'client.example'),
        ('  padded  ', 'padded'),
        ('x', 'x'),
        ('a' * 64, 'a' * 64),
    ],
)
def test_common_names(given, normal):
    assert normalise('cert', given) == normal


@pytest.mark.parametrize('given', ['', '   ', 'a' * 65, 'two\nlines'])
def test_invalid_common_names(given):
    with pytest.raises(exception.InvalidShareAccess):
        normalise('cert', given)


@pytest.mark.parametrize('given', ['alice', 'a', '~ !', 'x' * 255])
def test_cephx_ids(given):
    assert normalise('cephx', given) == given


@pytest.mark.parametrize('given', ['', 'a.b', 'jos\xe9', 'a\n', 'x' * 256])
def test_invalid_cephx_ids(given):
    with pytest.raises(exception.InvalidShareAccess):
        normalise('cephx', given)


def test_error_lists_the_access_types_of_the_version():
    with pytest.raises(exception.InvalidShareAccess) as caught:
        normalise('cephx', 'alice', cephx=False)
    assert 'ip, user, cert' in caught.value.msg
    assert 'cephx' not in caught.value.msg
    for kind in ('', 'IP', 'host'):
        assert kind not in ACCESS_TYPES
        with pytest.raises(exception.InvalidShareAccess):
            normalise(kind, '10.0.0.1')
