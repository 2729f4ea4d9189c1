"""Policy rules: the lists of rules, by the noun they are about."""

import itertools

from oslo_policy import policy

from manila_lite.policies import (
    access,
    admin,
    base,
    groups,
    networks,
    replicas,
    shares,
    snapshots,
    types,
)

_NOUNS = (base, admin, shares, snapshots, types, groups, access, networks, replicas)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with defaults, for the enforcer and the generator."""
    return list(itertools.chain.from_iterable(noun.RULES for noun in _NOUNS))
