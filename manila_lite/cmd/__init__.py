"""Commands: read the configuration, build all objects, start services.

Only this package knows about eventlet. Its monkey patching must precede
all other imports, so it is done here, where every command is imported.
"""

import os
import sys

CONCURRENCY = os.environ.get('MANILA_LITE_CONCURRENCY', 'threading')
"""The concurrency model of the process: `threading` or `eventlet`."""

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
    # Libraries import eventlet whenever it is installed, which costs
    # memory and prints warnings, so it is hidden from them.
    if 'eventlet' not in sys.modules:
        sys.modules['eventlet'] = None  # type: ignore[assignment]
else:
    sys.exit(f'MANILA_LITE_CONCURRENCY is threading or eventlet, not "{CONCURRENCY}"')
