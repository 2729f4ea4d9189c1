"""A cloud that is taken back to one moment, again and again.

A new cloud has to read its rules and all of its statements anew, which
takes ten times as long as what one crash is about. Here only what is
stored goes back, the database and the back ends, and a process begins on
it.
"""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import shutil
import typing

from tests.support.cloud import Cloud

PREPARATION_SEED = 1 << 40
"""A seed that no simulation has: it would give the same ids once more."""

Begin = Callable[..., tuple[Cloud, typing.Any]]


@contextlib.contextmanager
def rewindable(
    folder: pathlib.Path,
    prepare: Callable[[Cloud], typing.Any],
    kind: type[Cloud] = Cloud,
    **how: typing.Any,
) -> Iterator[Begin]:
    """Gives `begin(seed=0, section='', more='', remains=None)`: a cloud,
    and what `prepare(cloud)` gave, as both were after that call; or as
    remains have it, whose seed has to be another than theirs.

    The cloud is always the same one, and what it was before is gone.
    """
    now, then = folder / 'now', folder / 'then'
    now.mkdir()
    cloud = kind(now, seed=PREPARATION_SEED, **how)
    found = prepare(cloud)
    cloud.settle()
    cloud.db.dispose()
    shutil.copytree(now, then)
    moment = cloud.clock.now

    def begin(
        seed: int = 0,
        backend_conf: str = '',
        extra_conf: str = '',
        image: typing.Any = None,
    ) -> tuple[Cloud, typing.Any]:
        cloud.db.dispose()
        shutil.rmtree(now)
        if image is None:
            shutil.copytree(then, now)
        else:
            image.restore(now)
        cloud.rng.seed(seed)
        cloud.clock.now = moment if image is None else image.now
        cloud.loss_rate = cloud.duplicate_rate = 0.0
        cloud.clear_pauses()
        cloud.configure(backend_conf=backend_conf, extra_conf=extra_conf)
        cloud.restart()
        cloud.settle()  # the back ends may not be what they were
        return cloud, found

    try:
        yield begin
    finally:
        cloud.db.dispose()
