"""Policy rules of share types and access to them."""

from manila_lite.policies import base

RULES = [
    base.admin('share_type:create', 'Create a share type.', 'POST /v2/types'),
    base.admin('share_type:update', 'Change a share type.', 'PUT /v2/types/{id}'),
    base.reader('share_type:show', 'Show a share type.', 'GET /v2/types/{id}'),
    base.reader('share_type:index', 'List share types.', 'GET /v2/types'),
    base.reader(
        'share_type:default', 'Show the default share type.', 'GET /v2/types/default'
    ),
    base.admin('share_type:delete', 'Delete a share type.', 'DELETE /v2/types/{id}'),
    base.admin(
        'share_type:list_project_access',
        'List the projects that may use a private share type.',
        'GET /v2/types/{id}/os-share-type-access',
        'GET /v2/types/{id}/share_type_access',
    ),
    base.admin(
        'share_type:add_project_access',
        'Give a project access to a private share type.',
        'POST /v2/types/{id}/action',
    ),
    base.admin(
        'share_type:remove_project_access',
        'Remove the access of a project to a private share type.',
        'POST /v2/types/{id}/action',
    ),
]
