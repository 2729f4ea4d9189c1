"""Read the calls about share servers and their messages."""

import datetime

import sqlalchemy as sa

from manila_lite.db.models import services

MESSAGE = services.Message.__table__
MINUTES = 60


def details(cloud):
    """Return the detail of every user message, oldest first."""
    return [
        row.detail_id
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(MESSAGE).order_by(MESSAGE.c.created_at)
            )
        )
    ]


def set_up(cloud):
    """Return how often a server was set up."""
    return [call.method for call in cloud.driver().calls].count('_setup_server')


def delete_idle(cloud, minutes=10):
    cloud.clock.advance(minutes * MINUTES + 1)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=minutes)
    )
    cloud.settle()


def manage(cloud, network, identifier, **extra_conf):
    answer = cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': network,
                'identifier': identifier,
                **extra_conf,
            }
        },
        expect=202,
    )
    cloud.settle()
    return answer.json['share_server']['id']
