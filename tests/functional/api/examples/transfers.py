"""Valid requests about share transfers."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_TRANSFER = '/v2/share-transfers/{id}'


@example_for('GET /v2/share-transfers', 'GET /v2/share-transfers/detail')
def list_transfers(sample):
    return request_args()


@example_for('POST /v2/share-transfers')
def create_transfer(sample):
    return request_args(sample.transfer_body())


@example_for(f'GET {_TRANSFER}', f'DELETE {_TRANSFER}')
def transfer(sample):
    return request_args(id=sample.new_transfer()['id'])


@example_for(f'POST {_TRANSFER}/accept')
def accept(sample):
    offered = sample.new_transfer()
    return request_args({'accept': {'auth_key': offered['auth_key']}}, id=offered['id'])
