"""Measure and compare with the budgets; see README.md."""

import argparse
import sys

from benchmarks import (
    access_rules,
    ceph,
    cluster,
    copying,
    creation,
    hints,
    idle,
    instructions,
    listing,
    overview,
    page,
    placement,
    recovery,
    replicas,
    scale,
    scrape,
    snapshots,
    storage,
)
from benchmarks.verdict import Verdict

KINDS = {
    'instructions': instructions,
    'listing': listing,
    'creation': creation,
    'snapshots': snapshots,
    'access': access_rules,
    'overview': overview,
    'page': page,
    'placement': placement,
    'recovery': recovery,
    'replicas': replicas,
    'scrape': scrape,
    'copying': copying,
    'storage': storage,
    'ceph': ceph,
    'cluster': cluster,
    'hints': hints,
    'idle': idle,
}

SCALE = 'scale'
"""Needs a database and more time, so it is measured on request only."""


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks')
    parser.add_argument(
        'kind',
        nargs='*',
        choices=[*KINDS, SCALE, []],
        help=f'what to measure; default: everything but {SCALE}',
    )
    scale.add_options(parser)
    args = parser.parse_args()
    verdict = Verdict()
    for name in args.kind or KINDS:
        if name == SCALE:
            scale.run(verdict, args)
        else:
            KINDS[name].run(verdict)
    return 0 if verdict.summarize() else 1


if __name__ == '__main__':
    sys.exit(main())
