"""A process that dies at any place of the life of a replica.

As in `test_crashes`: of one that is made, with rules and snapshots, that
cannot be made, that takes over, that cannot, and that is removed. In the
end one is active, or more where all can be written to; all have the same
rules and all snapshots; quota, pools and back ends are as many as a
recount says.
"""

import pytest

from tests.simulation import crash_images as death
from tests.support.replicated import ReplicatedCloud
from tests.support.seeds import seeds


class MortalReplicas(death.CrashableCloud, ReplicatedCloud):
    """A cloud that replicates, and says where it may die."""


def create(cloud, found):
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def create_nowhere(cloud, found):
    cloud.request_replica(found['share'], 'beta')
    cloud.settle()


def create_that_fails(cloud, found):
    cloud.driver('gamma').half_fail_next('create_replica')
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def delete(cloud, found):
    cloud.ask('delete', found['beta'])
    cloud.settle()


def delete_that_fails(cloud, found):
    cloud.driver('beta').half_fail_next('delete_replica')
    cloud.ask('delete', found['beta'])
    cloud.settle()


def force_delete(cloud, found):
    cloud.ask('force_delete', found['beta'])
    cloud.settle()


def promote(cloud, found):
    cloud.ask('promote', found['beta'])
    cloud.settle()


def promote_that_fails(cloud, found):
    cloud.driver('beta').half_fail_next('promote_replica')
    cloud.ask('promote', found['beta'])
    cloud.settle()


def delete_active(cloud, found):
    """Of writable replicas, where another stays."""
    cloud.ask('delete', found['alpha'])
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (
        create,
        create_nowhere,
        create_that_fails,
        delete,
        delete_that_fails,
        force_delete,
        promote,
        promote_that_fails,
    )
}
CASES = [
    *(('readable', verb) for verb in VERBS.values()),
    ('dr', promote),
    ('writable', create),
    ('writable', delete_active),
]


@pytest.fixture(scope='module')
def prepare(tmp_path_factory):
    """`prepare(style)`: two replicas, with a rule and a snapshot."""
    made = {}

    def begin(style):
        if style not in made:
            cloud = MortalReplicas(
                tmp_path_factory.mktemp(style), seed=10_000, style=style
            )
            share_id = cloud.create_share_on('alpha', size=2)
            cloud.allow(share_id)
            cloud.snapshot(share_id)
            cloud.replicate(share_id, 'beta')
            cloud.update()
            cloud.check_invariants()
            assert {row.replica_state for row in cloud.replicas(share_id)} <= {
                'active',
                'in_sync',
            }
            found = {'share': share_id} | {
                name: next(
                    row.id
                    for row in cloud.replicas(share_id)
                    if row.host.endswith(f'@{name}#pool')
                )
                for name in ('alpha', 'beta')
            }
            cloud.db.dispose()
            made[style] = cloud.folder, death.capture(cloud), found
        return made[style]

    return begin


def begin(prepared, style, seed, image=None):
    folder, whole, _ = prepared
    cloud = death.boot(
        image or whole, folder, seed, MortalReplicas, style=style
    )
    cloud.restart()
    return cloud


def check(cloud, *where):
    try:
        cloud.settle()
        cloud.update()
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'{where}: {error}')
    finally:
        cloud.db.dispose()


@pytest.mark.parametrize(
    'style, verb', CASES, ids=lambda value: getattr(value, '__name__', value)
)
def test_a_crash_anywhere_breaks_no_invariant(prepare, style, verb):
    prepared = prepare(style)
    cloud = begin(prepared, style, 1)
    places = death.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    check(cloud, 'no death')
    left = list(
        {image.files: (place, image) for place, image in places}.values()
    )
    assert len(left) > 3
    for number, (place, image) in enumerate(left):
        check(begin(prepared, style, 100 + number, image), number, place)
    print(
        f'{style} {verb.__name__}: {len(places)} places, {len(left)} of '
        'them differ'
    )


@pytest.mark.parametrize(
    'verb', [promote, promote_that_fails], ids=lambda verb: verb.__name__
)
def test_two_crashes_of_a_promotion_break_no_invariant(prepare, verb):
    prepared = prepare('readable')
    cloud = begin(prepared, 'readable', 2)
    places = death.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    cloud.db.dispose()
    left = list({image.files: image for _, image in places}.values())
    number = 0
    for first, image in enumerate(left):
        cloud = begin(prepared, 'readable', 1000 + first, image)
        again = death.images_at_crash_points(cloud, cloud.settle)
        cloud.db.dispose()
        differ = list(
            {image.files: (place, image) for place, image in again}.values()
        )
        if differ:
            number += 1
            place, image = cloud.rng.choice(differ)
            check(
                begin(prepared, 'readable', 2000 + first, image), first, place
            )
    print(f'{verb.__name__}: {number} double crashes')


@pytest.mark.parametrize('seed', seeds(4))
def test_two_crashes_and_bad_messages_break_no_invariant(prepare, seed):
    prepared = prepare('readable')
    cloud = begin(prepared, 'readable', seed)
    verb = VERBS[cloud.rng.choice(sorted(VERBS))]
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    places = death.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    image = cloud.rng.choice(places)[1]
    cloud.db.dispose()
    cloud = begin(prepared, 'readable', 1000 + seed, image)
    again = death.images_at_crash_points(cloud, cloud.settle)
    if again:
        image = cloud.rng.choice(again)[1]
    cloud.db.dispose()
    check(begin(prepared, 'readable', 2000 + seed, image), verb.__name__)
