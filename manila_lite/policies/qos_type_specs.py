"""Policy rules of specs of QoS types."""

from manila_lite.policies import base

_SPECS = '/v2/qos-types/{id}/specs'

RULES = [
    base.admin('qos_type_specs:create', 'Set specs of a QoS type.', f'POST {_SPECS}'),
    base.admin('qos_type_specs:index', 'List specs of a QoS type.', f'GET {_SPECS}'),
    base.admin(
        'qos_type_specs:show', 'Show a spec of a QoS type.', f'GET {_SPECS}/{{key}}'
    ),
    base.admin(
        'qos_type_specs:update', 'Change a spec of a QoS type.', f'PUT {_SPECS}/{{key}}'
    ),
    base.admin(
        'qos_type_specs:delete',
        'Delete a spec of a QoS type.',
        f'DELETE {_SPECS}/{{key}}',
    ),
]
