"""No page shows or changes what belongs to others; enumerated by the routes.

Paths and actions come from the table of pages: a new one is tested as soon
as it is there, and a variable in its path needs an id in `estate`.
"""

import io
import re
import urllib.parse

import pytest

from manila_lite.api.ui import failures
from manila_lite.db.queries.recovery import overview
from tests.functional.ui import estate as estates
from tests.functional.ui.conftest import CONF, PASSWORD
from tests.support.browser import HOST, Browser, Page

SAFETY = {
    'Content-Security-Policy',
    'X-Content-Type-Options',
    'X-Frame-Options',
    'Referrer-Policy',
    'Cross-Origin-Opener-Policy',
    'Cross-Origin-Resource-Policy',
}
OWN = ('/delete', '/snapshot', '/replicate')
"""Actions that need no other field, and so are done to the own share."""
CREATING = {'/ui/shares', '/ui/groups', '/ui/networks', '/ui/security-services'}
"""What is posted there becomes a resource of the caller."""

SOMEONE = '00000000-0000-4000-8000-000000000000'


@pytest.fixture
def cloud(build_ui):
    return build_ui(kind=estates.EstateCloud)


@pytest.fixture
def estate(cloud, api, admin_api):
    return estates.build(cloud, api, admin_api)


def token_of(browser):
    return browser.open('/ui/').form('/ui/sign-out').fields['form_token']


def post(browser, path, fields, **headers):
    return browser.send(
        'POST', path, urllib.parse.urlencode(fields), **{'Origin': HOST, **headers}
    )


def leaks(estate, response, *sent):
    """Return the secrets in an answer that were not sent for it."""
    allowed = ' '.join(urllib.parse.unquote_plus(text) for text in sent)
    return [
        secret
        for secret in estate.secrets
        if secret in response.text and secret not in allowed
    ]


def test_pages_show_their_owner_what_they_hide_from_others(estate, alice):
    """Without this, the tests below could find nothing at all."""
    found = ''.join(alice.send('GET', path).text for path in estate.paths('GET'))
    for name in ('share', 'snapshot', 'failure', 'network', 'service', 'group'):
        assert f'{estates.MARK} {name}' in found
    assert '10.66.0.1' in found


def test_no_page_shows_resources_of_another_project(estate, bob):
    for path in estate.paths('GET'):
        response = bob.send('GET', path)
        assert response.status_int in (200, 403, 404), path
        if any(id in path for id in estate.ids.values()):
            assert response.status_int in (403, 404), path
        assert leaks(estate, response, path) == [], path


def test_no_query_shows_resources_of_another_project(estate, bob):
    ids = {**estate.ids, **estate.fields}
    names = ('after', 'marker', 'offset', 'resource_id', 'name~', 'kind')
    for path in estate.paths('GET'):
        for value in {*ids.values(), 'red', estates.MARK}:
            query = urllib.parse.urlencode(
                dict.fromkeys(names, value)
                | {name: ids[name] for name in ids}
                | {'project': 'red', 'project_id': 'red', 'all_tenants': '1'}
            )
            response = bob.send('GET', f'{path}?{query}')
            assert response.status_int < 500, path
            assert leaks(estate, response, path, query) == [], path


@pytest.mark.parametrize('kind', overview.RESOURCES)
def test_no_kind_of_rows_shows_those_of_another_project(estate, bob, kind):
    for condition in overview.CONDITIONS:
        path = f'/ui/rows?kind={kind}&condition={condition}'
        response = bob.send('GET', path)
        expected = 200 if kind in overview.OF_PROJECTS else 404
        assert response.status_int == expected
        assert leaks(estate, response) == []


def test_nothing_is_told_from_what_does_not_exist(estate, bob):
    """The answer about a resource of others is that about none."""
    absent = estate._replace(ids=dict.fromkeys(estate.ids, SOMEONE))
    for path, other in zip(estate.paths('GET'), absent.paths('GET'), strict=True):
        if path == other:
            continue
        answers = [bob.send('GET', one) for one in (path, other)]
        texts = [
            re.sub(r'As of .*|[0-9a-f]{8}(-[0-9a-f]+){4}', '', Page(one).text)
            for one in answers
        ]
        assert answers[0].status_int == answers[1].status_int, path
        assert texts[0] == texts[1], path


def test_no_form_changes_resources_of_another_project(cloud, estate, bob):
    token = token_of(bob)
    before = estates.dump(cloud)
    for path in estate.paths('POST'):
        if path in CREATING or path.endswith('/selected'):
            continue
        fields = {**estate.ids, **estate.fields, 'form_token': token}
        response = post(bob, path, fields)
        assert response.status_int in (403, 404), path
        assert leaks(estate, response, path, *fields.values()) == [], path
        assert estates.changed(before, estates.dump(cloud)) == [], path


def test_no_selection_changes_resources_of_another_project(cloud, estate, bob):
    before = estates.dump(cloud)
    ids = set(estate.ids.values())
    ids |= {estate.fields[name] for name in ('snapshot_id', 'replica_id')}
    selected = {f'selected-{id}': 'on' for id in ids}
    common = {'form_token': token_of(bob), 'status': 'error', 'confirm': str(len(ids))}
    paths = [path for path in estate.paths('POST') if path.endswith('/selected')]
    assert len(paths) == 5
    lists = [
        (path, f'resource_type={kind}')
        for path in paths
        for kind in (failures.KINDS if 'failures' in path else ('',))
    ]
    for path, listed in lists:
        for action in ('delete', 'reset-status'):
            fields = {**common, **selected, 'action': action, 'listed': listed}
            response = post(bob, path, fields)
            if response.status_int != 403:
                assert f'0 accepted, {len(ids)} refused' in response.text, path
            assert leaks(estate, response, path, *fields) == [], path
            assert estates.changed(before, estates.dump(cloud)) == [], path


@pytest.mark.parametrize('name', ['snapshot_id', 'replica_id', 'access_id'])
def test_own_share_is_no_way_to_the_parts_of_another(cloud, estate, bob, name):
    """A form of the page of one's own share may name any part."""
    form = bob.open('/ui/shares').form('/ui/shares')
    bob.submit(form, name='mine', size='1', share_proto='NFS')
    cloud.settle()
    mine = bob.address.partition('?')[0].rpartition('/')[2]
    token = token_of(bob)
    before = estates.dump(cloud)
    own = estate._replace(ids=estate.ids | {'share_id': mine})
    for path in own.paths('POST'):
        if mine not in path:
            continue
        # Only the part of the other share, so that nothing else is done.
        fields = {'form_token': token, 'confirm': 'mine', name: estate.fields[name]}
        if path.endswith(OWN):
            continue
        response = post(bob, path, fields)
        assert response.status_int >= 400, path
        assert estates.changed(before, estates.dump(cloud)) == [], path


@pytest.mark.parametrize(
    'sent',
    [
        {},
        {'form_token': ''},
        {'form_token': 'of bob'},
        {'Origin': 'https://evil.example'},
        {'Origin': 'null'},
        {'Sec_Fetch_Site': 'cross-site'},
        {'Sec_Fetch_Site': 'same-site'},
    ],
    ids=str,
)
def test_every_form_of_another_origin_is_refused(cloud, estate, root, bob, sent):
    """Root may do everything, but not what another site has root send."""
    token = token_of(root)
    headers = {k: v for k, v in sent.items() if k[0].isupper()}
    if sent.get('form_token'):
        token = token_of(bob)
    before = estates.dump(cloud)
    for path in (*estate.paths('POST'), '/ui/sign-out'):
        fields = {**estate.ids, **estate.fields, 'form_token': token}
        if 'form_token' not in sent and not headers:
            del fields['form_token']
        elif sent.get('form_token') == '':
            fields['form_token'] = ''
        response = post(root, path, fields, **headers)
        assert response.status_int == 403, path
        assert estates.changed(before, estates.dump(cloud)) == [], path
    assert 'root' in root.open('/ui/').text


def test_nothing_is_changed_by_following_a_link(cloud, estate, root):
    before = estates.dump(cloud)
    query = urllib.parse.urlencode(
        {**estate.ids, **estate.fields, 'form_token': token_of(root)}
    )
    for path in (*estate.paths('GET'), *estate.paths('POST')):
        assert root.send('GET', f'{path}?{query}').status_int < 500, path
        assert root.send('HEAD', f'{path}?{query}').status_int < 500, path
        assert estates.changed(before, estates.dump(cloud)) == [], path


def test_every_form_has_the_token_of_its_session(estate, root):
    token, seen = token_of(root), 0
    for path in estate.paths('GET'):
        page = Page(root.send('GET', path))
        for form in page.forms:
            if form.method == 'post':
                assert form.fields['form_token'] == token, (path, form)
                seen += 1
            else:
                assert 'form_token' not in form.fields, (path, form)
    assert seen > len(list(estate.paths('GET')))


def test_every_page_wants_a_session(cloud, estate):
    stranger = Browser(cloud.app)
    before = estates.dump(cloud)
    body = urllib.parse.urlencode(estate.fields)
    for method in ('GET', 'POST'):
        for path in estate.paths(method):
            response = stranger.send(method, path, body, Origin=HOST)
            assert response.status_int == 303, path
            to = response.headers['Location']
            assert to.startswith('/ui/sign-in?'), path
            assert response.text == ''
    assert estates.changed(before, estates.dump(cloud)) == []


def test_every_answer_has_the_headers_that_protect_browsers(cloud, estate, alice):
    signed_in = alice.cookies.copy()
    odd = ['/ui', '/ui/nothing', '/ui/static/page.js', '/ui/static/nothing']
    for path in (*estate.paths('GET'), '/ui/sign-in', '/ui/sign-out', *odd):
        for method in ('GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'TRACE', 'X'):
            alice.cookies = signed_in.copy()
            answer = alice.send(method, path)
            where = method, path, answer.status
            assert set(answer.headers) >= SAFETY, where
            stored = answer.headers.getall('Cache-Control')
            is_file = path.endswith('page.js') and answer.status_int == 200
            assert stored == ['no-cache' if is_file else 'no-store'], where
            assert all(len(answer.headers.getall(name)) == 1 for name in SAFETY), where
            assert 'Access-Control-Allow-Origin' not in answer.headers, where


@pytest.mark.parametrize(
    'fields', [{'CONTENT_TYPE': 'text/plain'}, {'CONTENT_LENGTH': '999999999'}]
)
def test_refusal_before_the_page_has_the_same_headers(cloud, fields):
    answer = {}

    def start(status, headers, exc_info=None):
        answer.update(headers, status=status)

    request = Browser(cloud.app)
    environ = request_environ('/ui/sign-in') | fields
    assert b''.join(request.app(environ, start))
    assert answer['status'][0] == '4'
    assert answer.keys() >= SAFETY
    assert answer['Cache-Control'] == 'no-store'


def request_environ(path):
    """Return the environment of a request that no browser sends."""
    return {
        'REQUEST_METHOD': 'POST',
        'PATH_INFO': path,
        'SCRIPT_NAME': '',
        'QUERY_STRING': '',
        'SERVER_NAME': 'localhost',
        'SERVER_PORT': '80',
        'SERVER_PROTOCOL': 'HTTP/1.1',
        'HTTP_HOST': 'localhost',
        'HTTP_ORIGIN': HOST,
        'CONTENT_TYPE': 'application/x-www-form-urlencoded',
        'CONTENT_LENGTH': '3',
        'wsgi.url_scheme': 'http',
        'wsgi.input': io.BytesIO(b'a=b'),
    }


def test_page_is_not_shared_with_the_sites_of_cors(build_cloud, tmp_path):
    """They may use the API, with tokens of their own."""
    (tmp_path / 'users').write_text('')
    other = 'https://dashboard.example'
    conf = (
        CONF.format(folder=tmp_path)
        + f'[cors]\nallowed_origin = {other}\nallow_credentials = true\n'
    )
    browser = Browser(build_cloud(conf, kind=estates.EstateCloud).app)
    asked = {'Origin': other, 'Access_Control_Request_Method': 'POST'}
    for method, path in (
        ('GET', '/ui/sign-in'),
        ('OPTIONS', '/ui/sign-in'),
        ('OPTIONS', '/ui/shares'),
        ('GET', '/ui/static/page.js'),
    ):
        answer = browser.send(method, path, **asked)
        assert not [
            name
            for name in answer.headers
            if name.lower().startswith('access-control-')
        ]
    answer = browser.send('GET', '/', **asked)
    assert answer.headers['Access-Control-Allow-Origin'] == other


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_every_cookie_is_of_this_site_and_hidden_from_scripts(cloud, scheme):
    """Set at sign-in, and ended at sign-out and when it has expired."""
    browser = Browser(cloud.app, f'{scheme}://localhost')
    form = browser.open('/ui/').form('/ui/sign-in')
    page = browser.submit(form, user='alice', password=PASSWORD)
    browser.submit(page.form('/ui/sign-out'))
    browser.cookies['manila_lite_ui'] = 'nonce.bm8='  # no token
    browser.open('/ui/')
    assert len(browser.set_cookies) == 3
    for line in browser.set_cookies:
        name, *attributes = line.split('; ')
        assert name.startswith('manila_lite_ui=')
        assert {'Path=/ui', 'HttpOnly', 'SameSite=Strict'} <= set(attributes)
        assert ('Secure' in attributes) == (scheme == 'https')
        assert not any(one.startswith('Domain') for one in attributes)


@pytest.mark.parametrize('name', ['detail', 'manage', 'x'])
def test_path_of_the_api_is_no_id(alice, name):
    alice.open(f'/ui/shares/{name}', expect=404)
