"""Policy rules of specs of share group types."""

from manila_lite.policies import base

_SPECS = '/v2/share-group-types/{id}/group-specs'

RULES = [
    base.admin('share_group_types_spec:create', 'Set group specs.', f'POST {_SPECS}'),
    base.admin(
        'share_group_types_spec:show', 'Show a group spec.', f'GET {_SPECS}/{{key}}'
    ),
    base.admin('share_group_types_spec:index', 'List group specs.', f'GET {_SPECS}'),
    base.admin(
        'share_group_types_spec:update', 'Change a group spec.', f'PUT {_SPECS}/{{key}}'
    ),
    base.admin(
        'share_group_types_spec:delete',
        'Delete a group spec.',
        f'DELETE {_SPECS}/{{key}}',
    ),
]
