"""Lists on the page: what is found, how it is sorted, what is done to many rows."""

import html
import re
import urllib.parse

import pytest

from manila_lite.api.ui import actions, groups, listing, networks, servers, shares, site
from tests.support.cloud_images import prepared

COLLECTIONS = (
    shares.COLLECTION,
    groups.COLLECTION,
    networks.COLLECTION,
    networks.SERVICES,
    servers.COLLECTION,
)
by_path = pytest.mark.parametrize(
    'collection', COLLECTIONS, ids=lambda collection: collection.noun
)


@pytest.fixture
@prepared
def three(cloud, api):
    """Shares of alice: `a` of 3 GiB, `b` of 1 GiB and `c` of 2 GiB."""
    found = {
        name: api.create(name=name, size=size, metadata={'tier': name * 2})['id']
        for name, size in (('a', 3), ('b', 1), ('c', 2))
    }
    cloud.settle()
    return found


def names(page):
    return re.findall(r'<th scope="row"><a [^>]*>([^<]*)<', page.html)


def find(browser, path='/ui/shares', expect=200, **query):
    return browser.open(f'{path}?{urllib.parse.urlencode(query)}', expect)


def select(browser, ids, expect=200, **fields):
    form = browser.open('/ui/shares').form('/ui/shares/selected')
    return browser.submit(
        form, expect=expect, **{f'selected-{id}': 'on' for id in ids}, **fields
    )


@by_path
def test_find_form_stands_before_the_rows_with_statuses_as_choices(root, collection):
    text = root.open(collection.path).html
    assert text.index('role="search"') < text.index('id="live"')
    for field in collection.finds:
        assert f'name="{field.name}"' in text
        for choice in field.choices:
            assert f'<option value="{choice}">' in text
    fields = {field.name: field for field in collection.finds}
    if 'status' in fields:
        assert fields['status'].choices


@by_path
def test_every_field_of_the_find_form_finds_nothing_without_a_match(
    three, root, collection
):
    for field in collection.finds:
        if field.name == listing.ID:
            continue
        value = field.choices[-1] if field.choices else 'no=such'
        page = find(root, collection.path, **{field.name: value})
        assert f'There are no such {collection.noun}.' in page.text, field
        # What was looked for is still in the form.
        assert value in page.html
        assert collection.path in page.links  # all of them


def test_shares_are_found_by_name_status_path_and_metadata(three, cloud, api, alice):
    path = f'/shares/{three["b"]}/export_locations'
    (location, *_) = api.request('GET', path, expect=200).json['export_locations']
    assert names(find(alice, **{'name~': 'c'})) == ['c']
    assert sorted(names(find(alice, status='available'))) == ['a', 'b', 'c']
    assert names(find(alice, export_location_path=location['path'])) == ['b']
    assert names(find(alice, metadata='tier=aa')) == ['a']
    assert names(find(alice, metadata='tier = aa')) == ['a']
    assert names(find(alice, metadata='tier=\'"aa')) == []
    page = find(alice, expect=400, metadata='tier')
    assert 'metadata: tier must be key=value.' in page.text
    assert names(find(alice, metadata='tier=aa', status='error')) == []


def test_an_id_leads_to_the_resource(three, alice):
    page = find(alice, id=f' {three["a"]} ')
    assert alice.address == f'/ui/shares/{three["a"]}'
    assert 'a' in page.text
    for nothing in ('x', '../quotas', '00000000-0000-4000-8000-000000000000'):
        assert alice.send('GET', f'/ui/shares?id={nothing}').status_int == 303
        to = alice.send('GET', f'/ui/shares?id={nothing}').headers['Location']
        assert alice.send('GET', urllib.parse.urlsplit(to).path).status_int == 404


@by_path
def test_the_api_sorts_by_every_column_that_has_a_key(three, root, collection):
    for column in collection.columns:
        if column.sort_key:
            find(root, collection.path, sort_key=column.sort_key, sort_dir='asc')


@pytest.mark.parametrize(
    'title, first, second', [('Name', 'a b c', 'c b a'), ('Size', 'b c a', 'a c b')]
)
def test_headings_sort_upwards_then_downwards(three, alice, title, first, second):
    page = alice.open('/ui/shares')
    assert 'aria-sort="descending"><a href="/ui/shares?sort_key=created' in page.html
    for wanted, direction in ((first, 'ascending'), (second, 'descending')):
        link = re.search(rf'<a href="([^"]+)">{title}</a>', page.html).group(1)
        page = alice.open(html.unescape(link))
        assert names(page) == wanted.split()
        assert re.search(rf'aria-sort="{direction}"><a [^>]+>{title}<', page.html)


def test_order_and_filters_are_kept_on_the_next_page(three, alice, monkeypatch):
    monkeypatch.setattr(listing, 'ROWS', 1)
    where, seen = '/ui/shares?sort_key=size&sort_dir=asc&status=available', []
    while where:
        page = alice.open(where)
        seen += names(page)
        assert '<option value="available" selected>' in page.html
        where = next((link for link in page.links if 'offset=' in link), None)
    assert seen == ['b', 'c', 'a']


def test_other_orders_are_those_of_the_list(three, alice):
    for query in ({'sort_key': 'host'}, {'sort_key': 'x'}, {'sort_dir': 'x'}):
        page = find(alice, **query)
        assert 'aria-sort="descending"' in page.html
        assert names(page) == ['c', 'b', 'a']


def test_selected_shares_are_deleted_when_their_number_is_typed(three, cloud, alice):
    ids = [three['a'], three['c']]
    for wrong in ('', '1', '3', 'two'):
        page = select(alice, ids, expect=400, action='delete', confirm=wrong)
        assert 'Nothing was done: 2 shares were selected' in page.text
    page = select(alice, ids, action='delete', confirm=' 2 ')
    assert '2 accepted, 0 refused.' in page.text
    cloud.settle()
    assert names(alice.open('/ui/shares')) == ['b']


def test_wrong_number_leaves_the_list_as_it_was(three, alice):
    where = '/ui/shares?sort_key=name&sort_dir=asc&name~=a'
    form = alice.open(where).form('/ui/shares/selected')
    page = alice.submit(
        form,
        expect=400,
        action='delete',
        confirm='2',
        **{f'selected-{three["a"]}': 'on'},
    )
    assert names(page) == ['a']
    assert 'aria-sort="ascending"' in page.html
    assert f'name="selected-{three["a"]}" checked' in page.html
    again = page.form('/ui/shares/selected')
    assert '1 accepted' in alice.submit(again, confirm='1', action='delete').text


def test_each_refusal_is_shown_beside_the_others(three, cloud, api, alice):
    api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': three['a']}}, expect=202
    )
    cloud.settle()
    gone = '00000000-0000-4000-8000-000000000000'
    page = select(
        alice, [three['a'], three['b'], gone, '..'], action='delete', confirm='4'
    )
    assert '1 accepted, 3 refused.' in page.text
    assert re.search(r'\ba : .*snapshot', page.text)
    assert 'b : accepted' in page.text
    cloud.settle()
    assert names(alice.open('/ui/shares')) == ['c', 'a']


def test_nothing_is_done_without_rows_or_an_action(three, alice):
    page = select(alice, [], expect=400, action='delete', confirm='0')
    assert 'select shares first' in page.text
    page = select(alice, [three['a']], expect=400, action='extend', confirm='1')
    assert 'choose an action' in page.text


def test_no_request_acts_on_more_rows_than_a_page_shows(three, alice, monkeypatch):
    monkeypatch.setattr(actions, 'MOST_SELECTED', 2)
    page = select(alice, three.values(), expect=400, action='delete', confirm='3')
    assert 'at most 2 shares may be selected' in page.text
    assert len(names(alice.open('/ui/shares?status=available'))) == 3


def test_administrators_set_the_status_of_many(three, cloud, root, alice):
    text = alice.open('/ui/shares').html
    assert 'value="reset-status"' not in text
    assert 'value="force-delete"' not in text
    ids = list(three.values())
    page = select(root, ids, action='reset-status', status='error', confirm='3')
    assert '3 accepted, 0 refused.' in page.text
    assert len(names(find(root, status='error'))) == 3
    page = select(root, ids, action='force-delete', confirm='3')
    cloud.settle()
    assert names(root.open('/ui/shares')) == []


def test_policies_decide_about_each_selected_row(three, sign_in):
    """A member who may not set a status sends the form nevertheless."""
    for name, action in (('alice', 'reset-status'), ('rita', 'delete')):
        browser = sign_in(name)
        token = browser.open('/ui/').form('/ui/sign-out').fields['form_token']
        fields = {
            'form_token': token,
            f'selected-{three["a"]}': 'on',
            'action': action,
            'status': 'error',
            'confirm': '1',
        }
        body = urllib.parse.urlencode(fields)
        answer = browser.send('POST', '/ui/shares/selected', body, Origin=browser.host)
        assert '0 accepted, 1 refused.' in answer.text
        assert names(browser.open('/ui/shares?status=available')) == ['c', 'b', 'a']


def test_readers_have_nothing_to_select(three, sign_in):
    text = sign_in('rita').open('/ui/shares').html
    assert 'selected' not in text.replace('<option value="" selected', '')


def test_every_list_with_actions_has_its_path():
    for collection in COLLECTIONS:
        assert (f'{collection.path}/selected' in site.PAGES) == bool(collection.many)
