"""Tokens validated by Keystone, cached by a real memcached."""

import pytest

from manila_lite.cmd.manage import main
from tests.support import command_line, memcached_server
from tests.support.keystone_server import Keystone

SECRET = 'memcache_security_strategy = ENCRYPT\nmemcache_secret_key = hush\n'


@pytest.fixture
def keystone():
    with Keystone() as found:
        yield found


def sign_in(keystone, installation):
    """Return a client with a token, and that token."""
    user = keystone.add_user('ann', 'secret', 'red', ['member', 'reader'])
    token, _ = keystone.authenticate(
        {
            'identity': {
                'password': {'user': {'name': user.name, 'password': user.password}}
            }
        }
    )
    return installation.rest(headers={'X-Auth-Token': token}), token


@pytest.mark.parametrize('protection', ['', SECRET])
def test_cached_token_outlives_a_restart(install, keystone, protection):
    with memcached_server.running() as (port, memcached):
        installation = install(
            auth='keystone',
            sections=f'{keystone.service_config()}'
            f'memcached_servers = 127.0.0.1:{port}\n{protection}',
        ).start()
        user, token = sign_in(keystone, installation)
        for _ in range(3):
            assert user.get('/shares') == {'shares': []}
        assert keystone.validations == 1
        installation.stop()
        installation.start()
        assert user.get('/shares') == {'shares': []}
        assert keystone.validations == 1
        memcached.kill()
        memcached.wait()
        # The process still knows the token; a new one asks Keystone again.
        assert user.get('/shares') == {'shares': []}
        assert keystone.validations == 1
        installation.stop()
        installation.start()
        assert user.get('/shares') == {'shares': []}
        assert keystone.validations == 2
        output = installation.running['serve'].output
        assert 'Traceback' not in output


def test_options_of_a_missing_library_are_refused(tmp_path):
    """Its package is not among our requirements."""
    file = tmp_path / 'manila.conf'
    file.write_text(
        '[DEFAULT]\nauth_strategy = keystone\n'
        '[keystone_authtoken]\nmemcached_servers = 127.0.0.1:11211\n'
        'memcache_sasl_enabled = true\n'
    )
    where = ('--config-file', str(file), '--state-dir', str(tmp_path))
    command_line.run(main, ['db', 'sync', *where])
    ended = command_line.run(main, ['status', 'upgrade-check', *where])
    assert ended.code == 2
    printed = ' '.join(ended.out.replace('|', ' ').split())
    assert 'python-binary-memcached' in printed
