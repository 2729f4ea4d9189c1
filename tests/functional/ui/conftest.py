"""A cloud with the page /ui, where users sign in with passwords."""

import functools

import pytest

from manila_lite.api.auth import users
from manila_lite.cmd.build.api import build_api
from tests.support.api_client import ApiClient
from tests.support.browser import Browser
from tests.support.cloud import Cloud

CONF = """
auth_strategy = http_basic
[ui]
enabled = true
[http_basic]
users_file = {folder}/users
token_key_file = {folder}/token_key
"""
PASSWORD = 'secret'
USERS = {
    'root': ('ops', 'admin'),
    'alice': ('red', 'member'),
    'bob': ('blue', 'member'),
    'rita': ('red', 'reader'),
}


class UiCloud(Cloud):
    """A cloud whose users are those of a file."""

    @functools.cached_property
    def _served(self):
        return build_api(self.process, enforcer=self.enforcer)

    @functools.cached_property
    def _api_app(self):
        """The API with authentication by headers, for the tests."""
        return build_api(self.process, auth=self._authenticate, enforcer=self.enforcer)[
            0
        ]


class _Caller(ApiClient):
    """A client of the API beside the pages."""

    def __init__(self, cloud, project, user, roles):
        super().__init__(cloud, project, user, roles)
        self.cloud = type('', (), {'app': cloud._api_app})


@pytest.fixture
def copies_clouds():
    return True


@pytest.fixture
def cloud(build_ui):
    return build_ui()


@pytest.fixture
def build_ui(build_cloud, tmp_path):
    """Return a function that builds a cloud with these users."""
    lines = [
        f'{name}:{hashed()}:id-{name}:{project}:{role}\n'
        for name, (project, role) in USERS.items()
    ]
    (tmp_path / 'users').write_text(''.join(lines))
    return functools.partial(build_cloud, CONF.format(folder=tmp_path), kind=UiCloud)


@functools.cache
def hashed():
    return users._hash(PASSWORD, 4)


@pytest.fixture
def sign_in(cloud):
    """Return a function that returns the browser of a user."""

    def sign_in(name):
        browser = Browser(cloud.app)
        form = browser.open('/ui/').form('/ui/sign-in')
        browser.submit(form, user=name, password=PASSWORD)
        return browser

    return sign_in


@pytest.fixture
def root(sign_in):
    """The browser of an administrator."""
    return sign_in('root')


@pytest.fixture
def alice(sign_in):
    """The browser of a member of the project `red`."""
    return sign_in('alice')


@pytest.fixture
def bob(sign_in):
    """The browser of a member of the project `blue`."""
    return sign_in('bob')


@pytest.fixture
def api(cloud):
    """The API as alice calls it."""
    return _Caller(cloud, 'red', 'id-alice', 'member,reader')


@pytest.fixture
def admin_api(cloud):
    return _Caller(cloud, 'ops', 'id-root', 'admin,member,reader')
