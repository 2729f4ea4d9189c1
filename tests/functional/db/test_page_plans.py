"""Pages at /ui and lists of the API read few rows of long tables.

On every database. The pages refresh themselves in each browser that has them
open; lists are of all projects, of which there may be many thousands.
"""

import base64

import pytest
import webob

from manila_lite.api import versions
from manila_lite.api.auth import users
from manila_lite.api.description import operations
from manila_lite.api.ui import site
from manila_lite.cmd.build.api import build_api
from manila_lite.db.queries import pages
from manila_lite.db.session import Database
from tests.functional.db import query_plans
from tests.support import databases, mass_rows
from tests.support.browser import Browser
from tests.support.service_process import ServiceProcess

SIZES = mass_rows.Sizes(
    shares=20_000,
    rules_of_share=2,
    snapshots=10_000,
    journal=20_000,
    messages=10_000,
    services=40,
    pools=80,
    projects=100,
    networks=5000,
    groups=5000,
    servers=4000,
    migrations=5000,
    decisions=5000,
    waiting=200,
)
SHORT = {
    'services',
    'service_incarnations',
    'pools',
    'availability_zones',
    'share_types',
    'share_type_extra_specs',
    'share_group_types',
    'work',
    'share_migrations',
}
"""Tables that are short in every deployment; a scan may be the best plan."""

NUMBER = 10**11 + 3
IDS = {
    'share_id': f'00000001-0000-4000-8000-{NUMBER}',
    'network_id': f'00000010-0000-4000-8000-{NUMBER}',
    'server_id': f'00000011-0000-4000-8000-{NUMBER}',
    'group_id': f'00000013-0000-4000-8000-{NUMBER}',
}
PATHS = [
    template.format_map(IDS)
    for template, handlers in site.PAGES.items()
    # The overview and its rows are in test_overview; failures need a query.
    if 'GET' in handlers and template not in ('/ui/', '/ui/rows', '/ui/failures')
]
QUERIES = [
    '/ui/failures?resource_type=SHARE&action_id=002&detail_id=001',
    '/ui/shares?metadata=key%3Dvalue',
    '/ui/networks?status=error',
    '/ui/groups?status=error',
    '/ui/servers?status=error',
    f'/ui/servers?share_network_id={IDS["network_id"]}',
    '/ui/in-flight?kind=share_instance',
    f'/ui/recovery?resource_id={IDS["server_id"]}',
]
USERS = {'root': ('ops', 'admin'), 'ann': ('project-1003', 'member')}
CONF = """
[ui]
enabled = true
[http_basic]
users_file = {folder}/users
token_key_file = {folder}/token_key
"""


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        mass_rows.insert(db, SIZES)
        yield db
        db.dispose()


@pytest.fixture(scope='module')
def app(db, tmp_path_factory):
    """Return the application, which knows an administrator and a member."""
    folder = tmp_path_factory.mktemp('service')
    password = users._hash('secret', 4)
    (folder / 'users').write_text(
        ''.join(
            f'{name}:{password}:id-{name}:{project}:{role}\n'
            for name, (project, role) in USERS.items()
        )
    )
    node = ServiceProcess(
        folder,
        db.url,
        fill=False,
        default=f'auth_strategy = http_basic\ndefault_share_type = {mass_rows.TYPE}',
        work=CONF.format(folder=folder),
    )
    app, _ = build_api(node.process)
    yield app
    node.stop()


@pytest.fixture(scope='module')
def browsers(app):
    """Return the browsers of the two users."""
    found = {}
    for name in USERS:
        found[name] = Browser(app)
        form = found[name].open('/ui/').form('/ui/sign-in')
        found[name].submit(form, user=name, password='secret')
    return found


@pytest.mark.parametrize('path', [*PATHS, *QUERIES])
@pytest.mark.parametrize('user', USERS)
def test_page_reads_few_rows_of_long_tables(db, browsers, user, path):
    with query_plans.recorded_statements() as statements:
        answer = browsers[user].send('GET', path)
    assert answer.status_int in ((200,) if user == 'root' else (200, 403))
    assert statements or answer.status_int == 403
    scanned = query_plans.explain_scans(db, statements, in_order=True)
    if path.startswith('/ui/networks?') or path == '/ui/networks':
        # PostgreSQL may read the flags of all servers at once for a page.
        scanned.pop('share_servers', None)
    long = scanned.keys() - SHORT
    assert not long, '\n\n'.join(scanned[table] for table in sorted(long))


LISTS = ('/shares', '/snapshots', '/share_instances', '/share-replicas')
"""Those of which a deployment has more than any other."""

SORTED_LISTS = ('/shares', '/snapshots', '/messages', '/share-groups')
"""Long lists that callers may sort."""

OF_ADMINISTRATORS = {
    '/shares': {'host', 'share_server_id'},
    '/snapshots': {'provider_location'},
    '/share-groups': {'share_server_id'},
}
"""Keys that sort nothing for others."""

READ_IN_FULL = {
    '/shares': {
        'availability_zone',
        'description',
        'display_description',
        'encryption_key_ref',
        'share_proto',
        'source_share_group_snapshot_member_id',
    },
    '/snapshots': {'description', 'display_description', 'size'},
}
"""Filters without an index. A list of all projects is then read until its
page is full; what few rows have is found at its end.
"""
NOT_FILTERS = {
    *('all_tenants', 'with_count', 'after'),
    *('limit', 'marker', 'offset', 'sort', 'sort_dir', 'sort_key'),
}
NOTHING = '00000001-0000-4000-8000-999999999999'
"""A value that no row has."""


def filters():
    """Yield path and query of each list, for each filter that it accepts."""
    paths = operations.describe_version([], versions.MAX)['paths']
    for path in LISTS:
        for key in paths[f'{versions.PREFIX}{path}']['get']['parameters']:
            name, schema = key.get('name', ''), key.get('schema', {})
            if (
                key.get('in') != 'query'
                or name in NOT_FILTERS
                or name in READ_IN_FULL.get(path, ())
                or name.endswith('~')
            ):
                continue
            values = {'boolean': 'true', 'integer': '7'}
            value = schema.get('enum', [values.get(schema.get('type'), NOTHING)])[0]
            yield path, f'{name}={"error" if name == "status" else value}'


def parameters(path):
    found = operations.describe_version([], versions.MAX)['paths']
    return {
        key['name']: key.get('schema', {})
        for key in found[f'{versions.PREFIX}{path}']['get']['parameters']
        if key.get('in') == 'query'
    }


def sorts():
    """Yield path and query of each list, for each key that sorts it."""
    for path in SORTED_LISTS:
        for key in parameters(path).get('sort_key', {}).get('enum', ()):
            for direction in ('asc', 'desc'):
                yield path, f'sort_key={key}&sort_dir={direction}'


def ask(db, app, user, path, query):
    """Return the answer to a list of 20, and the tables that it reads in full."""
    everywhere = '&all_tenants=1' if user == 'root' else ''
    request = webob.Request.blank(f'/v2{path}?{query}&limit=20{everywhere}')
    account = base64.b64encode(f'{user}:secret'.encode()).decode()
    request.headers['Authorization'] = f'Basic {account}'
    request.headers[versions.HEADER] = f'2.{versions.MAX}'
    with query_plans.recorded_statements() as statements:
        answer = request.get_response(app)
    scanned = query_plans.explain_scans(db, statements, in_order=True)
    return answer, {
        table: plan for table, plan in scanned.items() if table not in SHORT
    }


@pytest.mark.parametrize('path, query', list(filters()))
@pytest.mark.parametrize('user', USERS)
def test_filtered_list_reads_few_rows_of_long_tables(db, app, user, path, query):
    answer, scanned = ask(db, app, user, path, query)
    if user == 'root' and answer.status_int != 400:
        assert answer.status_int == 200, answer.text
    assert not scanned, '\n\n'.join(scanned.values())


@pytest.mark.parametrize('path, query', list(sorts()))
@pytest.mark.parametrize('user', USERS)
def test_sorted_list_reads_few_rows_of_long_tables(
    db, app, user, path, query, monkeypatch
):
    """What has no index of its own sorts lists up to a length only."""
    monkeypatch.setattr(pages, 'LONGEST', 20)
    answer, scanned = ask(db, app, user, path, query)
    key = query.removeprefix('sort_key=').partition('&')[0]
    is_ignored = user != 'root' and key in OF_ADMINISTRATORS.get(path, ())
    if is_ignored or key == pages.DEFAULT_SORT_KEY:
        assert answer.status_int == 200
    else:
        assert 'sort_key must be' in answer.text
    assert not scanned, '\n\n'.join(scanned.values())
