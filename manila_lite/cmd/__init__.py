"""Commands: they read the configuration, build all objects, start.

They alone know eventlet, which must replace what blocks before anything
else has imported it: here, where the import of every command begins.
"""

import os
import sys

CONCURRENCY = os.environ.get('MANILA_LITE_CONCURRENCY', 'threading')
"""How a process does several things at once: `threading` or `eventlet`."""

if CONCURRENCY == 'eventlet':
    import warnings

    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    try:
        import eventlet
    except ImportError:
        sys.exit(
            'MANILA_LITE_CONCURRENCY is eventlet, which is not '
            'installed: pip install manila_lite[eventlet]'
        )
    eventlet.monkey_patch()
elif CONCURRENCY == 'threading':
    # Libraries import eventlet wherever it is installed, which costs
    # memory and prints warnings; so they find it missing.
    if 'eventlet' not in sys.modules:
        sys.modules['eventlet'] = None  # type: ignore[assignment]
else:
    sys.exit(
        'MANILA_LITE_CONCURRENCY is threading or eventlet, not '
        f'"{CONCURRENCY}"'
    )
