"""OpenStack's dashboard, unmodified, on what `make run` starts."""

import contextlib
import os
import pathlib
import re
import subprocess

import pytest
import requests

from tests.functional.stories import suites
from tests.functional.stories.conftest import running
from tests.support import chromium, processes, requirements
from tests.support.make_run import MakeRun

DASHBOARD = pathlib.Path(__file__).parents[3] / 'build/dashboard'
COMMAND = (DASHBOARD / 'bin/python', *('-W', 'ignore', DASHBOARD / 'bin/django-admin'))

pytestmark = [suites.dashboard, pytest.mark.usefixtures('programs')]


@pytest.fixture(scope='module')
def programs():
    chromium.require()
    if not (DASHBOARD / 'ready').exists():
        requirements.missing('the dashboard: run tools/install-dashboard')


@pytest.fixture(scope='module')
def service(tmp_path_factory, programs):
    folder = tmp_path_factory.mktemp('dashboard')
    with running(MakeRun(folder)) as service:
        service.start()
        yield service


@pytest.fixture(scope='module')
def url(tmp_path_factory, service):
    """Return the URL of a dashboard that runs."""
    folder = tmp_path_factory.mktemp('horizon')
    environment = os.environ | {
        'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings',
        'KEYSTONE_URL': f'{service.root}/v3',
        'STATIC_ROOT': str(folder / 'static'),
    }
    environment.pop('PYTHONPATH', None)
    port = processes.free_port()
    with (folder / 'log').open('w') as log:
        subprocess.run(
            [*COMMAND, 'collectstatic', '--noinput', '--verbosity', '0'],
            env=environment,
            stdout=log,
            stderr=log,
            check=True,
        )
        server = subprocess.Popen(
            [*COMMAND, 'runserver', '--noreload', '--insecure', f'{port}'],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            processes.wait_until(
                lambda: _answers(f'http://127.0.0.1:{port}/'), 'the dashboard answers'
            )
            yield f'http://127.0.0.1:{port}'
        finally:
            server.terminate()
            server.wait()


def _answers(url):
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(url, timeout=60).ok
    return False


@pytest.fixture(scope='module')
def browser(tmp_path_factory, url):
    """A browser with an administrator who has signed in."""
    with chromium.started(tmp_path_factory.mktemp('browser')) as browser:
        browser.open(f'{url}/auth/login/?next=/project/shares/')
        browser.type('#id_username', 'admin')
        browser.type('#id_password', 'any')
        browser.submit('#id_password')
        browser.see('Create Share')
        yield browser


def test_every_page_of_shares_opens(browser, url):
    session = requests.Session()
    for cookie in browser.driver.get_cookies():
        session.cookies.set(cookie['name'], cookie['value'])
    pages = sorted(
        set(
            re.findall(
                r'href="(/(?:project|admin)/'
                r'(?:share|security|user_messages|resource_locks)[\w/]*)"',
                session.get(f'{url}/admin/share_types/', timeout=60).text,
            )
        )
    )
    assert len(pages) > 15, pages
    for page in pages:
        answer = session.get(f'{url}{page}', timeout=60)
        assert answer.status_code == 200, page
        # An error of the service is shown in a box, on a page that opens.
        assert 'Unable to' not in answer.text, page
        assert answer.url.endswith(page), answer.url


def test_share_is_created_and_deleted(browser, url, service):
    browser.open(f'{url}/project/shares/create/')
    browser.type('#id_name', 'seen')
    browser.type('#id_size', '1')
    browser.choose('#id_share_type', 'default')
    browser.submit('#id_name')
    browser.see('seen')
    browser.see('Available')
    rest = service.rest()
    (share,) = rest.get('/shares?all_tenants=1&name=seen')['shares']
    browser.driver.execute_script(  # it is drawn by its label
        f'document.querySelector(\'input[value="{share["id"]}"]\').click()'
    )
    browser.click('#shares__action_delete')
    browser.click('.modal-footer .btn-danger')
    rest.wait_gone(share['id'])


def test_share_migrates(browser, url, service):
    """The form has no new network and no new type: they are sent as ''."""
    rest = service.rest()
    rest.create_type('anywhere')
    share = rest.create_available(
        name='moving', share_proto='NFS', size=1, share_type='anywhere'
    )
    target = 'mirror' if '@dummy#' in share['host'] else 'dummy'
    browser.open(f'{url}/admin/shares/migration_start/{share["id"]}')
    browser.choose('#id_host', f'{service.host}@{target}#pool')
    browser.submit('#id_host')
    browser.see('Successfully sent the request to migrate')
    processes.wait_until(
        lambda: rest.show(share['id'])['task_state'] == 'migration_driver_phase1_done',
        'the first phase is done',
    )
    browser.open(f'{url}/admin/shares/migration_complete/{share["id"]}')
    browser.submit('button[type=submit], input[type=submit]')
    processes.wait_until(
        lambda: f'@{target}#' in rest.show(share['id'])['host'],
        'the share is on the other back end',
    )
