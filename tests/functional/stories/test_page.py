"""The page /ui in a real browser, with the service behind it."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.functional.stories.conftest import new_installation
from tests.support import chromium, sampling, share_servers

pytestmark = sampling.suite('the page in a browser', 4)


SCHEMES = ('light', 'dark')
WIDTHS = (400, 1280)
PAGES = (
    '/ui/',
    '/ui/shares',
    '/ui/groups',
    '/ui/networks',
    '/ui/security-services',
    '/ui/servers',
    '/ui/in-flight',
    '/ui/recovery',
    '/ui/migrations',
    '/ui/capacity',
    '/ui/charts',
    '/ui/quotas',
    '/ui/services',
)
SELECTED = 'Selected, copy it by the keyboard'
TYPE = {'snapshot_support': 'True', 'revert_to_snapshot_support': 'True'}


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    chromium.require()
    with chromium.started(tmp_path_factory.mktemp('browser')) as browser:
        yield browser


@pytest.fixture(scope='module')
def service(tmp_path_factory):
    """A running service with a share type, and its user of the API."""
    with new_installation(
        tmp_path_factory.mktemp('page') / 'installation',
        options='default_share_type = default\n',
    ) as one:
        one.start()
        one.user = one.rest()
        one.user.make_default_type(**TYPE)
        one.user.create_type('nowhere', share_backend_name='nowhere')
        yield one


def sign_in(browser, service):
    browser.driver.delete_all_cookies()
    browser.open(f'{service.root}/ui/')
    assert check(browser) == []
    browser.submit('#user')
    browser.see('Newest failures')


def check(browser):
    """Return what is wrong with the page, in both schemes and widths."""
    found = []
    for width in WIDTHS:
        browser.resize(width)
        wide = browser.overflow()
        if wide:
            found.append((width, 'is wider than the window', wide))
        for scheme in SCHEMES:
            browser.prefer(scheme)
            found += [(width, scheme, *one) for one in browser.violations()]
    return found


def test_share_lives_on_the_page(browser, service):
    sign_in(browser, service)
    browser.open(f'{service.root}/ui/shares')
    browser.type('#name', 'data <b>')
    browser.submit('#name')
    browser.see('The share is being created.')
    # It refreshes itself.
    browser.see('share instance created')
    browser.see('✓ available')

    browser.unfold('Add an access rule')
    browser.type('#access-to', '10.1.2.3')
    browser.submit('#access-to')
    browser.see('ip 10.1.2.3')

    browser.see('sudo mount -t nfs')

    browser.unfold('Take a snapshot')
    browser.type('#snapshot-name', 'before')
    browser.submit('#snapshot-name')
    browser.see('share instance snapshotted')
    assert check(browser) == []

    browser.unfold('Revert the share to before')
    browser.type('#confirm-revert', 'data')
    browser.submit('#confirm-revert')
    browser.see('Nothing was done')
    # The form is still open.
    browser.type('#confirm-revert', 'data <b>')
    browser.submit('#confirm-revert')
    browser.see('share instance reverted')

    browser.click('button[data-copy]')
    browser.wait(lambda: browser.said in ('Copied', SELECTED))
    assert check(browser) == []
    # The one answer that is an error is that of the wrong name.
    complaints = [one for one in browser.complaints() if '400 (Bad Request)' not in one]
    assert complaints == []


def test_failure_leads_from_the_overview_to_the_share(browser, service):
    service.user.request(
        'POST',
        '/shares',
        {
            'share': {
                'name': 'lost',
                'size': 1,
                'share_proto': 'NFS',
                'share_type': 'nowhere',
            }
        },
    )
    sign_in(browser, service)
    # The overview refreshes itself until the share has failed.
    browser.see('share type requires')
    browser.click('a[href^="/ui/failures"]')
    browser.see('✗ error')
    assert browser.find('input[aria-label="Select lost"]').is_selected()
    assert check(browser) == []
    browser.open(f'{service.root}/ui/')
    browser.click('a.failed[href*="kind=share_instance"]')
    browser.see('Shares: failed')
    assert check(browser) == []
    browser.click('main a code')
    browser.see('Share lost')
    browser.see('✗ error')
    browser.see('Extend: not possible. The share is error')
    assert check(browser) == []
    assert browser.complaints() == []


def test_keyboard_reaches_the_content_and_signs_out(browser, service):
    sign_in(browser, service)
    browser.open(f'{service.root}/ui/')
    browser.press(Keys.TAB)
    assert browser.focused.text == 'Skip to content'
    browser.press(Keys.ENTER)
    assert browser.focused.get_attribute('id') == 'main'
    browser.find('.account button').send_keys(Keys.ENTER)
    browser.find('#user')
    browser.open(f'{service.root}/ui/shares')
    browser.find('#user')


@pytest.mark.parametrize('path', PAGES)
def test_nothing_is_found_on_a_page(browser, service, path):
    service.user.create_available(share_proto='NFS', size=1)
    sign_in(browser, service)
    browser.open(f'{service.root}{path}')
    assert check(browser) == []
    assert browser.complaints() == []


def test_long_names_break_lines(browser, service):
    share = service.user.create_available(share_proto='NFS', size=1, name='n' * 255)
    sign_in(browser, service)
    for path in ('/ui/', '/ui/shares', f'/ui/shares/{share["id"]}'):
        browser.open(f'{service.root}{path}')
        assert check(browser) == []


def test_lists_are_as_narrow_as_the_window(browser, service):
    service.user.create_available(share_proto='NFS', size=1, name='n' * 255)
    sign_in(browser, service)
    browser.resize(min(WIDTHS))
    browser.open(f'{service.root}/ui/shares')
    browser.see('✓ available')
    scrolled = 'const one = document.querySelector(".list"); '
    scrolled += 'return one.scrollWidth - one.clientWidth;'
    assert browser.driver.execute_script(scrolled) == 0


def test_selected_rows_are_deleted_together(browser, service):
    for name in ('first', 'second'):
        service.user.create_available(share_proto='NFS', size=1, name=f'old {name}')
    sign_in(browser, service)
    browser.open(f'{service.root}/ui/shares?name~=old')
    assert check(browser) == []
    for name in ('first', 'second'):
        browser.click(f'input[aria-label="Select old {name}"]')
    browser.type('#many-confirm', '3')
    browser.submit('#many-confirm')
    browser.see('Nothing was done: 2 shares were selected')
    browser.open(f'{service.root}/ui/shares?name~=old')
    browser.click('input[aria-label="Select old first"]')
    browser.type('#many-confirm', '1')
    browser.submit('#many-confirm')
    browser.see('1 accepted, 0 refused.')
    assert check(browser) == []
    # The one answer that is an error is that of the wrong number.
    assert all('400 (Bad Request)' in one for one in browser.complaints())


@pytest.mark.parametrize('kind', ['networks', 'groups', 'servers', 'shares'])
def test_nothing_is_found_on_the_page_of_a_resource(browser, service, kind):
    path = create(service, kind)
    sign_in(browser, service)
    browser.open(f'{service.root}{path}')
    browser.see('Actions')
    browser.driver.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    assert check(browser) == []
    assert browser.complaints() == []


def create(service, kind):
    """Create a resource with all its parts; return its path."""
    if kind == 'shares':
        share = service.user.create_available(share_proto='NFS', size=1)
        return f'/ui/shares/{share["id"]}/migration'
    network = service.user.request(
        'POST', '/share-networks', {'share_network': {'name': kind}}
    )['share_network']['id']
    posted = {'type': 'ldap', 'name': 'directory'}
    security = service.user.request(
        'POST', '/security-services', {'security_service': posted}
    )['security_service']['id']
    service.user.request(
        'POST',
        f'/share-networks/{network}/action',
        {'add_security_service': {'security_service_id': security}},
    )
    if kind == 'networks':
        return f'/ui/networks/{network}'
    if kind == 'servers':
        return f'/ui/servers/{share_servers.insert_server(service, network)}'
    types = [service.user.get('/types')['share_types'][0]['id']]
    posted = {'name': 'pairs', 'share_types': types}
    group_type = service.user.request(
        'POST', '/share-group-types', {'share_group_type': posted}
    )['share_group_type']['id']
    posted = {'share_group_type_id': group_type, 'share_types': types}
    group = service.user.request('POST', '/share-groups', {'share_group': posted}, 202)[
        'share_group'
    ]['id']
    return f'/ui/groups/{group}'
