"""Forms that create: they offer what works, and say beside a field why not."""

import re

import pytest

from manila_lite.db.models import services

LONG = 'x' * 256
NOTHING = '00000000-0000-4000-8000-000000000000'
NEEDS_NETWORK = 'with servers'

REFUSED = [
    ('shares', 'size', {'size': '0'}),
    ('shares', 'size', {'size': 'two'}),
    ('shares', 'size', {'size': '100000'}),  # by a quota
    ('shares', 'name', {'name': LONG}),
    ('shares', 'share_proto', {'share_proto': 'HDFS'}),
    ('shares', 'share_type', {'share_type': 'none'}),
    ('shares', 'share_network_id', {'share_type': NEEDS_NETWORK}),
    ('shares', 'share_network_id', {'share_network_id': NOTHING}),
    ('shares', 'share_group_id', {'share_group_id': NOTHING}),
    ('shares', 'availability_zone', {'availability_zone': 'mars'}),
    ('shares', 'metadata', {'metadata': 'tier=gold\n\ntier'}),
    ('shares', 'metadata', {'metadata': f'{LONG}=gold'}),
    ('groups', 'name', {'name': LONG}),
    ('groups', 'share_type', {'share_type': NOTHING}),
    ('groups', 'share_group_type_id', {'share_group_type_id': NOTHING}),
    ('groups', 'share_network_id', {'share_network_id': NOTHING}),
    ('groups', 'availability_zone', {'availability_zone': 'mars'}),
    ('networks', 'name', {'name': LONG}),
    ('networks', 'availability_zone', {'availability_zone': 'mars'}),
    ('networks', 'neutron_subnet_id', {'neutron_net_id': NOTHING}),
    ('security-services', 'type', {'type': 'none'}),
    ('security-services', 'dns_ip', {'type': 'ldap', 'dns_ip': LONG}),
    ('security-services', 'password', {'type': 'ldap', 'password': LONG}),
]


@pytest.fixture
def types(admin_api):
    """A type that needs a share network, beside the default one."""
    specs = {'driver_handles_share_servers': 'True'}
    body = {'share_type': {'name': NEEDS_NETWORK, 'extra_specs': specs}}
    admin_api.request('POST', '/types', body, expect=200)


@pytest.fixture
def all_fields(cloud, api, admin_api, types):
    """What forms offer only where there is a choice: zones, groups, networks."""
    insert_zone(cloud)
    found = admin_api.request('GET', '/types', expect=200).json['share_types']
    body = {'name': 'pairs', 'share_types': [one['id'] for one in found]}
    made = admin_api.request(
        'POST', '/share-group-types', {'share_group_type': body}, expect=200
    ).json
    default = next(one['id'] for one in found if one['name'] == 'default')
    body = {
        'share_group_type_id': made['share_group_type']['id'],
        'share_types': [default],
    }
    api.request('POST', '/share-groups', {'share_group': body}, expect=202)
    cloud.settle()


def insert_zone(cloud):
    zone = services.AvailabilityZone.__table__
    values = {'id': NOTHING, 'name': 'venus', 'created_at': cloud.db.utcnow()}
    cloud.db.write(lambda session: session.run(zone.insert().values(**values)))


def submit(browser, where, **fields):
    path = f'/ui/{where}'
    page = browser.open(path)
    form = page.form(path)
    # A browser sends the first option of a selection.
    for name in ('share_proto', 'share_group_type_id'):
        if name in form.fields:
            form.fields[name] = options(page, name)[0][0]
    answer = browser.send(
        'POST', path, urlencode(form.fields | fields), Origin=browser.host
    )
    assert 400 <= answer.status_int < 500
    return answer.text


def urlencode(fields):
    return '&'.join(f'{name}={quote(value)}' for name, value in fields.items())


def quote(text):
    return ''.join(f'%{byte:02X}' for byte in text.encode())


@pytest.mark.parametrize(
    'where, field, fields',
    REFUSED,
    ids=[
        f'{where}-{field}-{number}' for number, (where, field, _) in enumerate(REFUSED)
    ],
)
def test_a_refusal_stands_beside_its_field(all_fields, alice, where, field, fields):
    text = submit(alice, where, **fields)
    (reason,) = re.findall(r'role="alert"[^>]*>([^<]+)<', text)
    found = re.findall(rf'<(?:input|select|textarea)[^>]*name="{field}"[^>]*>', text)
    (tag,) = [one for one in found if 'find-' not in one]
    assert 'aria-invalid="true"' in tag
    assert f'aria-describedby="refusal-{field}"' in tag
    (beside,) = re.findall(
        r'id="refusal-(\w+)"[^>]*><span[^>]*>✗</span> ([^<]+)<', text
    )
    assert beside == (field, reason)
    # What was typed is kept, except for passwords.
    for name, value in fields.items():
        if name in ('name', 'size', 'dns_ip'):
            assert f'value="{value}"' in text
        elif name == 'password':
            assert value not in text


def options(page, name):
    (select,) = re.findall(
        rf'<select id="\S+" name="{name}">(.+?)</select>', page.html, re.S
    )
    return re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)<', select)


def test_a_new_share_is_offered_what_works(types, alice):
    page = alice.open('/ui/shares')
    assert [value for value, *_ in options(page, 'share_proto')] == ['NFS', 'CIFS']
    found = options(page, 'share_type')
    texts = [text for *_, text in found]
    assert sorted(texts) == ['default', f'{NEEDS_NETWORK} (needs a share network)']
    assert [text for _, selected, text in found if selected] == ['default']
    assert 'for types that need one' in page.text


def test_networks_are_offered_if_a_type_needs_one(alice):
    assert 'for types that need one' not in alice.open('/ui/shares').text


def test_metadata_of_a_new_share_are_lines(cloud, api, alice):
    form = alice.open('/ui/shares').form('/ui/shares')
    alice.submit(
        form, name='data', share_proto='NFS', metadata='tier = gold\r\n\r\nurl=a=b'
    )
    (share,) = api.request('GET', '/shares/detail', expect=200).json['shares']
    assert share['metadata'] == {'tier': 'gold', 'url': 'a=b'}


@pytest.mark.parametrize('where', ['shares', 'groups', 'networks'])
def test_zones_are_offered_where_there_is_a_choice(cloud, alice, where):
    assert 'name="availability_zone"' not in alice.open(f'/ui/{where}').html
    insert_zone(cloud)
    found = options(alice.open(f'/ui/{where}'), 'availability_zone')
    assert {value for value, *_ in found} >= {'', 'venus'}


# Actions


@pytest.fixture
def share(cloud, api):
    share = api.create(name='data', size=2)
    cloud.settle()
    return f'/ui/shares/{share["id"]}'


REFUSED_ACTIONS = [
    ('extend', 'new_size', {'new_size': '100000'}),
    ('extend', 'new_size', {'new_size': 'two'}),
    ('shrink', 'new_size', {'new_size': '9', 'confirm': 'data'}),
    ('shrink', 'confirm', {'new_size': '1', 'confirm': 'date'}),
    ('allow', 'access_to', {'access_type': 'ip', 'access_to': '10.0.0.0/99'}),
    ('snapshot', 'name', {'name': LONG}),
    ('delete', 'confirm', {'confirm': ''}),
]


@pytest.mark.parametrize('action, field, fields', REFUSED_ACTIONS)
def test_a_refused_action_stays_open_with_the_reason_beside_the_field(
    share, alice, action, field, fields
):
    path = f'{share}/{action}'
    form = alice.open(share).form(path)
    body = urlencode(form.fields | fields)
    answer = alice.send('POST', path, body, Origin=alice.host)
    assert 400 <= answer.status_int < 500
    details = re.findall(r'<details open>(.+?)</details>', answer.text, re.S)
    (opened,) = [one for one in details if f'action="{path}"' in one]
    assert len(details) == 1
    (tag,) = re.findall(rf'<(?:input|select)[^>]*name="{field}"[^>]*>', opened)
    assert 'aria-invalid="true"' in tag
    assert f'refusal-{field}' in tag
    assert f'id="refusal-{field}"' in opened
    for name, value in fields.items():
        if name not in ('confirm', 'access_type'):
            assert f'value="{value}"' in opened


def test_reason_without_a_field_stands_in_the_form(admin_api, share, alice):
    admin_api.request(
        'PUT', '/quota-sets/red', {'quota_set': {'snapshots': 0}}, expect=200
    )
    form = alice.open(share).form(f'{share}/snapshot')
    page = alice.submit(form, expect=413, name='first')
    assert page.html.count('<details open>') == 1
    opened = page.html.partition('<details open>')[2].partition('</details>')[0]
    assert 'value="first"' in opened
    assert 'class="state failed"' in opened
    assert 'aria-invalid' not in page.html
