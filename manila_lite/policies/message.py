"""Policy rules of user messages."""

from manila_lite.policies import base

RULES = [
    base.reader('message:get', 'Show a message.', 'GET /v2/messages/{id}'),
    base.reader('message:get_all', 'List messages.', 'GET /v2/messages'),
    base.member('message:delete', 'Delete a message.', 'DELETE /v2/messages/{id}'),
]
