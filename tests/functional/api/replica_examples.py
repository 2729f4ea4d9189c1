"""Examples and refusals of replicas of shares."""

from tests.functional.api import error_cases as refusals
from tests.functional.api.error_cases import UNKNOWN
from tests.functional.api.error_cases import Refused
from tests.functional.api.examples import of
from tests.functional.api.sample_cloud import given

_REPLICAS = '/v2/share-replicas'
_REPLICA = f'{_REPLICAS}/{{id}}'
_ACTION = f'POST {_REPLICA}/action'
_METADATA = f'{_REPLICA}/metadata'
_EXPORTS = f'{_REPLICA}/export-locations'
_VALUES = {'metadata': {'color': 'blue'}}


@of(f'GET {_REPLICAS}', f'GET {_REPLICAS}/detail')
def collection(world):
    return given()


@of(f'POST {_REPLICAS}')
def create(world):
    world.mirror()
    return given({'share_replica': {'share_id': world.mirrored}})


@of(f'GET {_REPLICA}', f'GET {_METADATA}', f'GET {_EXPORTS}')
def replica(world):
    return given(id=world.replica)


@of(f'DELETE {_REPLICA}', f'{_ACTION} resync', f'{_ACTION} force_delete')
def idle(world):
    return given(id=world.mirror())


@of(f'{_ACTION} promote')
def promote(world):
    return given({'quiesce_wait_time': 30}, id=world.mirror())


@of(f'{_ACTION} reset_status')
def reset_status(world):
    return given({'status': 'error'}, id=world.mirror())


@of(f'{_ACTION} reset_replica_state')
def reset_replica_state(world):
    return given({'replica_state': 'out_of_sync'}, id=world.mirror())


@of(f'POST {_METADATA}', f'PUT {_METADATA}')
def change_metadata(world):
    return given(_VALUES, id=world.replica)


@of(
    f'GET {_METADATA}/{{key}}',
    f'POST {_METADATA}/{{key}}',
    f'DELETE {_METADATA}/{{key}}',
)
def metadata_item(world):
    world.admin.request(
        'PUT', f'/share-replicas/{world.replica}/metadata', _VALUES, expect=200
    )
    return given(_VALUES, id=world.replica, key='color')


@of(f'GET {_EXPORTS}/{{el}}')
def export(world):
    return given(id=world.replica, el=world.replica_export)


@refusals.of(404, f'GET {_REPLICAS}', f'GET {_REPLICAS}/detail')
def of_an_unknown_share(world):
    return Refused(given(query=f'?share_id={UNKNOWN}'))


@refusals.of(404, f'POST {_REPLICAS}')
def made_of_an_unknown_share(world):
    return Refused(given({'share_replica': {'share_id': UNKNOWN}}))


@refusals.of(413, f'POST {_REPLICAS}')
def above_the_quota(world):
    return Refused(given({'share_replica': {'share_id': world.vast}}))


@refusals.of(400, f'DELETE {_REPLICA}')
def last_active_one(world):
    world.mirror()
    return Refused(given(id=world.original))
