"""QoS types."""

from manila_lite.exception.families import Conflict, Invalid, NotFound


class QosTypeNotFound(NotFound):
    message = 'QoS type {qos_type_id} could not be found.'


class QosTypeSpecNotFound(NotFound):
    message = 'QoS type {qos_type_id} has no spec {key}.'


class QosTypeExists(Conflict):
    message = 'QoS type {name} already exists.'


class QosTypeInUse(Invalid):
    message = 'QoS type {qos_type_id} is in use by {users}.'
