"""Schemas of request bodies, with fast checks and a JSON Schema export.

A schema consists of types. For each version, a type gives a function that
converts the value sent to the value that handlers use: `'10'` becomes 10,
`'true'` becomes True. An error names the field and the rule, never the value,
which may be a secret.
"""

from manila_lite.api.schema.base import *
from manila_lite.api.schema.containers import *
from manila_lite.api.schema.scalars import *
