"""The status of a share transfer, which is not shown to users."""

from manila_lite.states.machine import GONE, GiveUp, Machine


class TransferStatus:
    """The statuses of share transfers, spelled once."""

    PENDING = 'pending'
    ACCEPTING = 'accepting'


# Short in the table only.
S = TransferStatus

# fmt: off
SHARE_TRANSFER = Machine(
    'share_transfer', 'transfers',
    initial={'create': S.PENDING},
    moves=[
        # event            from                           to
        ('accept',         {S.PENDING},                   S.ACCEPTING),
        ('accepted',       {S.ACCEPTING},                 GONE),
        ('accept_failed',  {S.ACCEPTING},                 S.PENDING),

        ('withdraw',       {S.PENDING},                   GONE),
        ('expire',         {S.PENDING},                   GONE),
        # An administrator has reset the status of the share, which has
        # been offered once more.
        ('replaced',       {S.PENDING, S.ACCEPTING},      GONE),
    ],
    at_rest={S.PENDING},
    in_flight={
        # Nothing has changed hands, and the key is valid again.
        S.ACCEPTING: GiveUp('accept_failed'),
    },
)
# fmt: on
