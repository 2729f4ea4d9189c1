"""One request id leads through the log, from the request to its end."""

import pytest

from tests.functional.stories.conftest import new_installation
from tests.support.processes import wait_until


@pytest.fixture
def service(tmp_path):
    with new_installation(
        tmp_path / 'installation',
        auth='noauthv2',
        options='default_share_type = default',
        sections='[quota]\ngigabytes = 100000',
        backends={'dummy': {'max_over_subscription_ratio': 1}},
    ) as installation:
        installation.start()
        installation.rest('admin').make_default_type()
        yield installation


def lines(service, *words):
    """Return the lines of the log that have all these words."""
    return [
        line
        for _, text in service.logs()
        for line in text.splitlines()
        if all(word in line for word in words)
    ]


def wait_for_line(service, *words):
    (line,) = wait_until(lambda: lines(service, *words), f'the line {words}')
    return line


def request_id(rest):
    return rest.last.headers['x-openstack-request-id']


def instance_id(service, share_id):
    admin = service.rest('admin')
    return admin.get(f'/shares/{share_id}/instances')['share_instances'][0]['id']


def test_request_id_of_a_user_is_found_from_accepted_to_finished(service):
    rest = service.rest('red')
    share = rest.create()
    id = request_id(rest)
    instance = instance_id(service, share['id'])
    everything = (id, share['id'], instance, 'red')
    assert 'INFO' in wait_for_line(service, 'Accepted', *everything)
    assert 'INFO' in wait_for_line(service, 'Finished', *everything)
    line = wait_for_line(service, id, 'POST /v2/shares', '200', 'red')
    assert 'INFO' in line
    rest.wait_at_rest(share['id'])
    rest.act(share['id'], 'extend', {'new_size': 2})
    id = request_id(rest)
    everything = (id, share['id'], instance, 'red')
    wait_for_line(service, 'Accepted', 'extend_share_instance', *everything)
    wait_for_line(service, 'Finished', 'extend_share_instance', *everything)
    # The prefix of the line, too, is that of the user.
    (finished,) = lines(service, 'Finished', id)
    assert finished.count(id) == 2


def test_failures_and_refusals_name_the_request(service):
    rest = service.rest('red')
    share = rest.create_available()
    rest.act(share['id'], 'shrink', {'new_size': 9}, expect=400)
    everything = (request_id(rest), share['id'], 'red')
    line = wait_for_line(service, 'Refused POST', *everything)
    assert 'INFO' in line
    assert instance_id(service, share['id']) in line
    rest.create(size=200_000, expect=413)
    wait_for_line(service, 'Refused POST', ' 413 ', request_id(rest))
    rest.create_available(size=900)
    placed = rest.create(size=900)
    id = request_id(rest)
    assert rest.wait_at_rest(placed['id'])['status'] == 'error'
    line = wait_for_line(service, 'Refused placement', id, placed['id'])
    assert 'WARNING' in line
    assert not lines(service, 'Traceback')
