"""Measure and compare with the budgets; see README.md."""

import argparse
import sys

from benchmarks import access_rules
from benchmarks import creation
from benchmarks import idle
from benchmarks import instructions
from benchmarks import listing
from benchmarks import recovery
from benchmarks import replicas
from benchmarks import snapshots
from benchmarks.verdict import Verdict

KINDS = {
    'instructions': instructions,
    'listing': listing,
    'creation': creation,
    'snapshots': snapshots,
    'access': access_rules,
    'recovery': recovery,
    'replicas': replicas,
    'idle': idle,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks')
    parser.add_argument(
        'kind',
        nargs='*',
        choices=[*KINDS, []],
        help='what to measure; default: everything',
    )
    verdict = Verdict()
    for name in parser.parse_args().kind or KINDS:
        KINDS[name].run(verdict)
    return 0 if verdict.summarize() else 1


if __name__ == '__main__':
    sys.exit(main())
