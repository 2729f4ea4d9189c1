"""Who may do what: one list of rules per resource."""

import itertools

from manila_lite.policies import availability_zone
from manila_lite.policies import base
from manila_lite.policies import message
from manila_lite.policies import quota_class_set
from manila_lite.policies import quota_set
from manila_lite.policies import scheduler_stats
from manila_lite.policies import service
from manila_lite.policies import share
from manila_lite.policies import share_export_location
from manila_lite.policies import share_instance
from manila_lite.policies import share_instance_export_location
from manila_lite.policies import share_type
from manila_lite.policies import share_types_extra_spec

_RESOURCES = (
    base, availability_zone, scheduler_stats, service, quota_set,
    quota_class_set, share, share_instance, share_type,
    share_types_extra_spec, share_export_location,
    share_instance_export_location, message)


def list_rules():
    """All rules with their defaults, for the enforcer and the generator."""
    return list(itertools.chain.from_iterable(
        resource.RULES for resource in _RESOURCES))
