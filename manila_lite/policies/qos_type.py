"""Policy rules of QoS types."""

from manila_lite.policies import base

RULES = [
    base.admin('qos_type:create', 'Create a QoS type.', 'POST /v2/qos-types'),
    base.admin('qos_type:update', 'Update a QoS type.', 'PUT /v2/qos-types/{id}'),
    base.reader('qos_type:show', 'Show a QoS type.', 'GET /v2/qos-types/{id}'),
    base.reader('qos_type:index', 'List QoS types.', 'GET /v2/qos-types'),
    base.admin('qos_type:delete', 'Delete a QoS type.', 'DELETE /v2/qos-types/{id}'),
]
