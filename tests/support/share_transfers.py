"""Requests about share transfers on a `Cloud`."""

from tests.support.api_client import ApiClient


def client_of(cloud, project):
    """Return the client of a member of a project."""
    return ApiClient(
        cloud, project=project, user=f'user of {project}', roles='member,reader'
    )


def request_offer(api, share_id, expect=None, **more):
    """Offer a share; return the response."""
    return api.request(
        'POST',
        '/share-transfers',
        {'transfer': {'share_id': share_id, **more}},
        expect=expect,
    )


def offer(api, share_id, **more):
    """Offer a share; return the transfer with its key."""
    return request_offer(api, share_id, expect=202, **more).json['transfer']


def accept(api, transfer, expect=202, **more):
    return api.request(
        'POST',
        f'/share-transfers/{transfer["id"]}/accept',
        {'accept': {'auth_key': transfer['auth_key'], **more}},
        expect=expect,
    )


def withdraw(api, transfer, expect=200):
    return api.request('DELETE', f'/share-transfers/{transfer["id"]}', expect=expect)


def expire(cloud):
    """Run the periodic task of every back end."""
    for backend in cloud.share.backends:
        backend.endpoints.share_transfers.expire()
