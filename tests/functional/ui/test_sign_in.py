"""Who gets a page, and which requests of browsers are refused."""

import pytest

from tests.functional.ui.conftest import CONF, PASSWORD, UiCloud
from tests.support.browser import HOST, Browser

EVERYWHERE = ['Content-Security-Policy', 'X-Content-Type-Options', 'Referrer-Policy']


def form_of(browser):
    return browser.open('/ui/').form('/ui/sign-in')


def test_page_without_a_session_is_the_sign_in(cloud):
    browser = Browser(cloud.app)
    page = browser.open('/ui/rows?kind=share_instance')
    assert browser.address.startswith('/ui/sign-in?to=')
    assert page.form('/ui/sign-in').fields['to'] == '/ui/rows'


def test_password_opens_the_page_that_was_asked_for(cloud):
    browser = Browser(cloud.app)
    form = browser.open('/ui/').form('/ui/sign-in')
    page = browser.submit(form, user='alice', password=PASSWORD)
    assert browser.address == '/ui/'
    assert 'alice in project red' in page.text


@pytest.mark.parametrize(
    'user, password', [('alice', 'wrong'), ('nobody', PASSWORD), ('', '')]
)
def test_wrong_password_is_refused_without_a_cookie(cloud, user, password):
    browser = Browser(cloud.app)
    page = browser.submit(form_of(browser), expect=401, user=user, password=password)
    assert page.form('/ui/sign-in')
    assert 'Wrong user or password.' in page.text
    assert browser.cookies == {}
    assert PASSWORD not in page.html


@pytest.mark.parametrize(
    'to', ['//evil.example/', 'https://evil.example/ui/', '/v2/', r'/\evil']
)
def test_sign_in_leads_to_no_other_site(cloud, to):
    browser = Browser(cloud.app)
    browser.submit(form_of(browser), user='alice', password=PASSWORD, to=to)
    assert browser.address == '/ui/'


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_cookie_is_for_this_site_only_and_secure_over_https(cloud, scheme):
    browser = Browser(cloud.app, f'{scheme}://localhost')
    browser.submit(form_of(browser), user='alice', password=PASSWORD)
    attributes = browser.set_cookies[-1].split('; ')[1:]
    assert {'Path=/ui', 'HttpOnly', 'SameSite=Strict'} <= set(attributes)
    assert ('Secure' in attributes) == (scheme == 'https')


@pytest.mark.parametrize(
    'value', ['', 'x', 'x.####', 'x.bm8', 'x.DQo=', '"', 'a.b.c', 'é.é']
)
def test_forged_cookie_leads_to_the_sign_in(cloud, value):
    browser = Browser(cloud.app)
    browser.cookies['manila_lite_ui'] = value
    assert browser.open('/ui/').form('/ui/sign-in')


def test_session_ends_with_its_user(cloud, alice, tmp_path):
    assert 'alice' in alice.open('/ui/').text
    lines = (tmp_path / 'users').read_text().splitlines(keepends=True)
    (tmp_path / 'users').write_text(
        ''.join(line for line in lines if not line.startswith('alice'))
    )
    page = alice.open('/ui/')
    assert 'Your session has ended.' in page.text
    assert alice.cookies == {}


def test_sign_out_ends_the_session_of_the_browser(alice):
    form = alice.open('/ui/').form('/ui/sign-out')
    assert alice.submit(form).form('/ui/sign-in')
    assert alice.cookies == {}


def test_copied_cookie_opens_no_page_after_the_sign_out(cloud, alice):
    thief = Browser(cloud.app)
    thief.cookies = dict(alice.cookies)
    assert 'alice' in thief.open('/ui/').text
    alice.submit(alice.open('/ui/').form('/ui/sign-out'))
    assert 'Your session has ended.' in thief.open('/ui/').text


def test_sign_out_ends_no_other_session_of_the_user(alice, sign_in):
    other = sign_in('alice')
    alice.submit(alice.open('/ui/').form('/ui/sign-out'))
    assert 'alice' in other.open('/ui/').text


def test_sign_in_has_the_focus_in_its_first_field(cloud):
    page = Browser(cloud.app).open('/ui/sign-in')
    focused = [given['id'] for _, given in page.tags if 'autofocus' in given]
    assert focused == ['user']


@pytest.mark.parametrize(
    'headers',
    [
        {},
        {'Origin': 'null'},
        {'Origin': 'https://evil.example'},
        {'Referer': 'https://evil.example/ui/'},
        {'Origin': f'{HOST}.evil.example'},
        {'Origin': HOST, 'Sec_Fetch_Site': 'cross-site'},
        {'Origin': HOST, 'Sec_Fetch_Site': 'same-site'},
    ],
    ids=str,
)
@pytest.mark.parametrize('path', ['/ui/sign-out', '/ui/sign-in'])
def test_request_of_another_site_is_refused(alice, path, headers):
    token = alice.open('/ui/').form('/ui/sign-out').fields['form_token']
    response = alice.send('POST', path, f'form_token={token}', **headers)
    assert response.status_int == 403
    assert 'another site' in response.text
    assert 'alice' in alice.open('/ui/').text


@pytest.mark.parametrize('token', ['', 'x', 'é'])
def test_form_without_the_token_of_the_session_is_refused(alice, token):
    form = alice.open('/ui/').form('/ui/sign-out')
    page = alice.submit(form, expect=403, form_token=token)
    assert 'not of your session' in page.text
    assert alice.cookies


def test_form_token_of_another_session_is_refused(alice, bob):
    token = bob.open('/ui/').form('/ui/sign-out').fields['form_token']
    form = alice.open('/ui/').form('/ui/sign-out')
    alice.submit(form, expect=403, form_token=token)


@pytest.mark.parametrize(
    'path',
    ['/ui/', '/ui/sign-in', '/ui/nothing', '/ui/static/page.css', '/ui/static/page.js'],
)
def test_every_answer_forbids_what_is_not_of_this_site(alice, path):
    response = alice.send('GET', path)
    assert all(name in response.headers for name in EVERYWHERE)
    policy = response.headers['Content-Security-Policy']
    assert "default-src 'none'" in policy
    assert 'unsafe' not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize('path', ['/ui/', '/ui/sign-in', '/ui/nothing'])
def test_pages_have_no_script_or_style_within(alice, path):
    page = alice.open(path, expect=404 if 'nothing' in path else 200)
    assert '<style' not in page.html
    for tag, attributes in page.tags:
        assert 'style' not in attributes
        assert not any(name.startswith('on') for name in attributes)
        assert tag != 'script' or attributes['src']
        for name in ('src', 'href', 'action'):
            value = attributes.get(name) or '/'
            assert value.startswith(('/ui', '#', '/')) or value == 'data:,'
            assert not value.startswith('//')
    assert page.headers['Cache-Control'] == 'no-store'


def test_files_are_sent_once(alice):
    first = alice.send('GET', '/ui/static/page.js')
    again = alice.send('GET', '/ui/static/page.js', If_None_Match=first.headers['ETag'])
    assert (first.status_int, again.status_int) == (200, 304)
    assert again.body == b''


@pytest.mark.parametrize(
    'path', ['/ui/static/../front.py', '/ui/static/', '/ui/static/page.html']
)
def test_nothing_else_is_sent_as_a_file(alice, path):
    assert alice.send('GET', path).status_int == 404


def test_sign_in_does_not_change_the_api(cloud, alice):
    """The cookie is not for the API, nor its header for the page."""
    assert alice.send('GET', '/v2/shares').status_int == 401
    browser = Browser(cloud.app)
    response = browser.send('GET', '/ui/', X_Auth_Token='anything')
    assert response.status_int == 303


def test_sign_in_needs_the_identity_api(build_cloud, tmp_path):
    (tmp_path / 'users').write_text('')
    conf = CONF.format(folder=tmp_path) + 'identity_api = false\n'
    browser = Browser(build_cloud(conf, kind=UiCloud).app)
    page = browser.open('/ui/')
    assert 'identity_api' in page.text
    assert page.forms == []
    response = browser.send('POST', '/ui/sign-in', 'user=x&password=y', Origin=HOST)
    assert response.status_int == 401
    assert browser.cookies == {}


def test_page_is_off_by_default(build_cloud):
    cloud = build_cloud()
    browser = Browser(cloud.app)
    assert browser.send('GET', '/ui/').status_int == 404


def test_without_authentication_only_local_names_lead_to_the_page(build_cloud):
    """A name of another site may lead here, and so its scripts."""
    cloud = build_cloud('[ui]\nenabled = true')
    for host, status in (
        ('http://localhost:8786', 200),
        ('http://127.0.0.1:8786', 200),
        ('http://[::1]:8786', 200),
        ('http://rebound.example:8786', 403),
        ('http://127.0.0.1.example', 403),
    ):
        browser = Browser(cloud.app, host)
        assert browser.send('GET', '/ui/sign-in').status_int == status
