"""Share types, group types and QoS types."""

from manila_lite.policies import base

_GROUP_SPECS = '/v2/share-group-types/{id}/group-specs'
_QOS_SPECS = '/v2/qos-types/{id}/specs'

RULES = [
    # Share types
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
    # Extra specs
    base.admin(
        'share_types_extra_spec:create',
        'Set extra specs.',
        'POST /v2/types/{id}/extra_specs',
    ),
    base.admin(
        'share_types_extra_spec:show',
        'Show an extra spec.',
        'GET /v2/types/{id}/extra_specs/{key}',
    ),
    base.admin(
        'share_types_extra_spec:index',
        'List extra specs.',
        'GET /v2/types/{id}/extra_specs',
    ),
    base.admin(
        'share_types_extra_spec:update',
        'Change an extra spec.',
        'PUT /v2/types/{id}/extra_specs/{key}',
    ),
    base.admin(
        'share_types_extra_spec:delete',
        'Delete an extra spec.',
        'DELETE /v2/types/{id}/extra_specs/{key}',
    ),
    # Group types
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
    # Specs of group types
    base.admin(
        'share_group_types_spec:create', 'Set group specs.', f'POST {_GROUP_SPECS}'
    ),
    base.admin(
        'share_group_types_spec:show',
        'Show a group spec.',
        f'GET {_GROUP_SPECS}/{{key}}',
    ),
    base.admin(
        'share_group_types_spec:index', 'List group specs.', f'GET {_GROUP_SPECS}'
    ),
    base.admin(
        'share_group_types_spec:update',
        'Change a group spec.',
        f'PUT {_GROUP_SPECS}/{{key}}',
    ),
    base.admin(
        'share_group_types_spec:delete',
        'Delete a group spec.',
        f'DELETE {_GROUP_SPECS}/{{key}}',
    ),
    # QoS types
    base.admin('qos_type:create', 'Create a QoS type.', 'POST /v2/qos-types'),
    base.admin('qos_type:update', 'Update a QoS type.', 'PUT /v2/qos-types/{id}'),
    base.reader('qos_type:show', 'Show a QoS type.', 'GET /v2/qos-types/{id}'),
    base.reader('qos_type:index', 'List QoS types.', 'GET /v2/qos-types'),
    base.admin('qos_type:delete', 'Delete a QoS type.', 'DELETE /v2/qos-types/{id}'),
    # Specs of QoS types
    base.admin(
        'qos_type_specs:create', 'Set specs of a QoS type.', f'POST {_QOS_SPECS}'
    ),
    base.admin(
        'qos_type_specs:index', 'List specs of a QoS type.', f'GET {_QOS_SPECS}'
    ),
    base.admin(
        'qos_type_specs:show', 'Show a spec of a QoS type.', f'GET {_QOS_SPECS}/{{key}}'
    ),
    base.admin(
        'qos_type_specs:update',
        'Change a spec of a QoS type.',
        f'PUT {_QOS_SPECS}/{{key}}',
    ),
    base.admin(
        'qos_type_specs:delete',
        'Delete a spec of a QoS type.',
        f'DELETE {_QOS_SPECS}/{{key}}',
    ),
]
