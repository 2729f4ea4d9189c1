"""Policy rules of share group types and access to them."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_group_type:create',
        'Create a share group type.',
        'POST /v2/share-group-types',
    ),
    base.reader(
        'share_group_type:show',
        'Show a share group type.',
        'GET /v2/share-group-types/{id}',
    ),
    base.reader(
        'share_group_type:index', 'List share group types.', 'GET /v2/share-group-types'
    ),
    base.reader(
        'share_group_type:default',
        'Show the default share group type.',
        'GET /v2/share-group-types/default',
    ),
    base.admin(
        'share_group_type:delete',
        'Delete a share group type.',
        'DELETE /v2/share-group-types/{id}',
    ),
    base.admin(
        'share_group_type:list_project_access',
        'List the projects that may use a private share group type.',
        'GET /v2/share-group-types/{id}/access',
    ),
    base.admin(
        'share_group_type:add_project_access',
        'Give a project access to a private share group type.',
        'POST /v2/share-group-types/{id}/action',
    ),
    base.admin(
        'share_group_type:remove_project_access',
        'Remove the access of a project to a private share group type.',
        'POST /v2/share-group-types/{id}/action',
    ),
]
