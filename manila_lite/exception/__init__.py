"""Error families, then every concrete error, by noun.

A family defines the HTTP code of its members; only the fault middleware
turns an error into a response. The codes are those of the published API.
"""

from manila_lite.exception.drivers import *
from manila_lite.exception.families import *
from manila_lite.exception.families import ManilaLiteError
from manila_lite.exception.requests import *
from manila_lite.exception.resources import *
from manila_lite.exception.types import *

# Services name the module in the errors that they send each other.
for _error in list(globals().values()):
    if isinstance(_error, type) and issubclass(_error, ManilaLiteError):
        _error.__module__ = __name__
