"""Texts of drivers are kept and shown without their secrets."""

import time
import typing

from oslo_config import cfg
from oslo_utils import strutils
import pytest

from manila_lite import masking


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Forget the secrets that a test has added."""
    monkeypatch.setattr(masking, '_known', masking._KnownSecrets())


@pytest.mark.parametrize(
    'text',
    [
        'login failed: password=hunter2',
        'login failed: password = "hunter2"',
        "login failed: {'password': 'hunter2', 'user': 'root'}",
        'login failed: {"adminPass": "hunter2"}',
        'login failed: {"vserver_password":"hunter2"}',
        'Password: hunter2',
        'passwd: hunter2',
        'cli --user root --password hunter2 volume create',
        '<password>hunter2</password>',
        'POST /login?user=root&api_key=hunter2&x=1',
        'X-Auth-Token: hunter2',
        'X-Subject-Token=hunter2',
        'Authorization: Basic hunter2hunter2==',
        'authorization: bearer hunter2.hunter2.hunter2',
        'sent Bearer hunter2.hunter2.hunter2',
        "'Authorization': 'hunter2'",
        'secret_key => hunter2',
        'access-key: hunter2',
        'https://root:hunter2@array/api',
        'GET http://:hunter2@10.0.0.1:80/ failed',
        'rabbit://user:one@a:5672,user:hunter2@b:5672/',
        'redis://:hunter2/@2@locks:6379',
        'mysql+pymysql://manila:hunter2@db/manila',
        '-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-',
        '-----BEGIN PRIVATE KEY-----\nhunter2',
        'token: hunter2, retries: 3',
        'client_secret="hunter2',
    ],
)
def test_secrets_are_masked(text):
    masked = masking.mask(text)
    assert 'hunter2' not in masked
    assert masking.MASK in masked
    assert masking.mask(masked) == masked


@pytest.mark.parametrize(
    'text',
    [
        'The password is wrong.',
        'no such volume: /vol/data@snap-1 (10.0.0.1:2049)',
        'share 1 GiB on host@backend#pool',
        'work with fence 4 is older than 7',
        'https://array/api: 503',
        'rsync root@10.0.0.1:/vol/a /vol/b',
        'the basic authentication failed',
        'bearer of good news',
        'keyboard interrupt: monkey=1',
        '',
    ],
)
def test_other_texts_are_kept(text):
    assert masking.mask(text) == text


def test_values_of_secret_options_are_masked_everywhere():
    conf = cfg.ConfigOpts()
    conf.register_opts(
        [
            cfg.StrOpt('san', secret=True, default='tiger&lily'),
            cfg.StrOpt('pin', secret=True, default='4711'),
            cfg.ListOpt('keys', secret=True, default=['first-key', 'other']),
            cfg.DictOpt('of', secret=True, default={'gold': 'aurum-79'}),
            cfg.StrOpt('unset', secret=True),
            cfg.StrOpt('public', default='nothing special'),
            cfg.StrOpt('url', secret=True, default='nfs://me:p%40ss-word@array/x'),
        ],
        'backend',
    )
    conf([], default_config_files=[])
    masking.remember_secret_options(conf)
    assert masking.mask(
        'san tiger&lily, tiger%26lily; pin 4711, not 47110; first-key, '
        'aurum-79, p@ss-word at array, nothing special'
    ) == ('san ***, ***; pin ***, not 47110; ***, ***, *** at array, nothing special')


def test_texts_around_a_secret_are_kept():
    assert masking.mask(
        "login failed: {'password': 'hunter2', 'user': 'root'} at array"
    ) == ("login failed: {'password': ***, 'user': 'root'} at array")


def test_every_name_that_the_library_masks_is_looked_for():
    for name in strutils._SANITIZE_KEYS:
        assert 'hunter2' not in masking.mask(f"'{name}': 'hunter2'")


def test_later_secrets_are_masked_too():
    masking.remember_secrets(['some-secret'])
    masking.remember_secrets(['some-secret-2'])
    assert masking.mask('some-secret some-secret-2') == '*** ***'


def test_documents_are_masked_in_depth():
    assert masking.mask_values(
        {
            'pools': [{'name': 'gold', 'note': 'password=hunter2'}],
            'api_token': 'hunter2',
            'size': 5,
            'free': None,
            'tags': ('a', 'token=b'),
        }
    ) == {
        'pools': [{'name': 'gold', 'note': 'password=***'}],
        'api_token': '***',
        'size': 5,
        'free': None,
        'tags': ['a', 'token=***'],
    }


def test_all_that_is_below_the_name_of_a_secret_is_masked():
    assert masking.mask_values(
        {
            'password': ['hunter2'],
            'token': {'a': 'hunter2'},
            'api_key': b'hunter2',
            'access_key': 4711,
            'secret': '',
            'credentials': [],
            'private_key': None,
            'auth_token': True,
        }
    ) == {
        'password': '***',
        'token': '***',
        'api_key': '***',
        'access_key': '***',
        'secret': '',
        'credentials': [],
        'private_key': None,
        'auth_token': True,
    }


def test_every_kind_of_sequence_is_masked_as_a_list():
    class Login(typing.NamedTuple):
        user: str
        note: str

    assert masking.mask_values(
        {'login': Login('root', 'token=a'), 'tags': {'token=b'}}
    ) == {'login': ['root', 'token=***'], 'tags': ['token=***']}


@pytest.mark.parametrize('text', ['hunter2', 'https://root:hunter2@array'])
def test_secrets_across_the_end_of_a_long_text_are_masked(text):
    masking.remember_secrets(['hunter2'])
    shown = text.index('hunter2') + 4
    padding = 'x ' * masking.MAX_LENGTH
    before = padding[: masking.MAX_LENGTH - shown - 1] + ' '
    assert 'hunt' not in masking.mask(before + text)


@pytest.mark.parametrize(
    'text',
    [
        'password ' * 100_000,
        '://' + 'a' * 200_000,
        "'password': '" * 50_000,
        '://a:,' * 100_000,
        'token-' * 100_000,
        '-----BEGIN PRIVATE KEY-----' * 20_000,
        '://a:' * 13_000 + '@',
        'a,' * 30_000 + '@',
    ],
)
def test_hostile_texts_do_not_take_long(text):
    began = time.monotonic()
    masked = masking.mask(text)
    assert time.monotonic() - began < 5
    assert len(masked) <= masking.MAX_LENGTH * 2


def test_new_options_are_counted():
    conf = cfg.ConfigOpts()
    before = masking.count_options(conf)
    conf.register_opts([cfg.StrOpt('a'), cfg.StrOpt('b')])
    conf.register_opt(cfg.StrOpt('c', secret=True), 'backend')
    assert masking.count_options(conf) == before + 3
