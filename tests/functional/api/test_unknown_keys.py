"""A body may have keys that the published API does not define.

They are ignored, except by the operations that this module lists; the
documentation names the same ones.
"""

from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_hostile_input import WRITES
from tests.functional.api.test_published_surface import fault

UNKNOWN = 'no_such_key'

REFUSING = {
    'PUT /v2/quota-sets/{project_id}',
    'PUT /v2/quota-class-sets/{class}',
    'PUT /v2/resource-locks/{id}',
    # As published.
    'POST /v2/share-groups',
}
"""Operations that write what the keys of the body name, and nothing else."""

KEY_IN_URL = '{key}'
"""A body for it has that key and no other."""


WITHOUT_KEYS = {'POST /v2/share-backups/{id}/action restore'}
"""Actions whose value is no object: here the id of a share, or null."""


@by_key([one for one in WRITES if one.key not in WITHOUT_KEYS])
def test_unknown_key_is_ignored_unless_listed(sample, operation):
    args = example(operation)(sample)
    body = _with_unknown_key(args.body or {}, bool(operation.action))
    answer = sample.send_request(operation, args._replace(body=body))
    if operation.key in REFUSING:
        assert answer.status_int == 400
        assert UNKNOWN in fault(answer)['message']
    elif KEY_IN_URL in operation.path:
        assert answer.status_int == 400
    else:
        assert answer.status_int == operation.success_code, answer.text


def _with_unknown_key(body, is_action):
    """Return the body with the key beside those of the operation."""
    if not is_action and len(body) == 1:
        ((wrapper, inner),) = body.items()
        if isinstance(inner, dict):
            return {wrapper: {**inner, UNKNOWN: 'x'}}
    return {**body, UNKNOWN: 'x'}
