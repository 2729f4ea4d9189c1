"""Sign-in at the page /ui with tokens of Keystone."""

import re

import pytest
import requests

from tests.support.keystone_server import Keystone


@pytest.fixture(scope='module')
def keystone():
    with Keystone() as found:
        yield found


@pytest.fixture
def service(install, keystone):
    return install(
        auth='keystone', sections=f'[ui]\nenabled = true\n{keystone.service_config()}'
    ).start()


def sign_in(service, token):
    """Return a browser, and the page that it is led to."""
    browser = requests.Session()
    page = browser.get(f'{service.root}/ui/', timeout=60)
    assert 'Token of the identity service' in page.text
    page = browser.post(
        f'{service.root}/ui/sign-in',
        {'token': token},
        headers={'Origin': service.root},
        timeout=60,
    )
    return browser, page


def test_token_of_keystone_opens_the_page_of_its_project(service, keystone):
    user = keystone.add_user('ann', 'secret', 'red', ['member', 'reader'])
    token, _ = keystone.authenticate(
        {
            'identity': {
                'password': {'user': {'name': user.name, 'password': user.password}}
            }
        }
    )
    browser, page = sign_in(service, token)
    assert page.url == f'{service.root}/ui/'
    assert re.search(r'ann in project \w+', page.text)
    assert token not in page.text
    # The page and the API have the same policies.
    answer = browser.get(f'{service.root}/ui/in-flight', timeout=60)
    assert answer.status_code == 403


@pytest.mark.parametrize('token', ['forged', 'a' * 2900])
def test_token_that_keystone_refuses_ends_the_session(service, token):
    browser, page = sign_in(service, token)
    assert 'Your session has ended.' in page.text
    assert not browser.cookies
    assert service.running['serve'].output.count('Traceback') == 0


def test_token_that_no_cookie_holds_is_refused(service):
    browser, page = sign_in(service, 'a' * 4000)
    assert page.status_code == 401
    assert 'too long' in page.text
    assert not browser.cookies
