"""The status of a share network.

A network is in flight while any of its share servers is being changed,
and at rest again when the last of them is done.
"""

from manila_lite.states.machine import GONE, GiveUp, Machine


class NetworkStatus:
    """The statuses of share networks, spelled once."""

    ACTIVE = 'active'
    ERROR = 'error'
    NETWORK_CHANGE = 'network_change'


# Short in the table only.
S = NetworkStatus


# fmt: off
SHARE_NETWORK = Machine(
    'share_network', 'share_networks',
    initial={'create': S.ACTIVE},
    moves=[
        # event            from                           to
        ('change',         {S.ACTIVE},                    S.NETWORK_CHANGE),
        ('changed',        {S.NETWORK_CHANGE},            S.ACTIVE),
        ('change_failed',  {S.NETWORK_CHANGE},            S.ERROR),
        ('deleted',        {S.ACTIVE, S.ERROR},           GONE),
    ],
    resets={S.ACTIVE, S.ERROR, S.NETWORK_CHANGE},
    at_rest={S.ACTIVE, S.ERROR},
    in_flight={
        S.NETWORK_CHANGE: GiveUp('change_failed'),
    },
)
# fmt: on
