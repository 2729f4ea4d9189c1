"""Schemas of request bodies, with fast checks and a JSON Schema export.

A schema consists of types. For each version, a type gives a function that
converts the value sent to the value that handlers use: `'10'` becomes 10,
`'true'` becomes True. An error names the field and the rule, never the value,
which may be a secret.
"""

from manila_lite.api.schema.base import Check
from manila_lite.api.schema.base import Type
from manila_lite.api.schema.base import ValidationError
from manila_lite.api.schema.base import anything
from manila_lite.api.schema.bodies import Schema
from manila_lite.api.schema.bodies import body_of
from manila_lite.api.schema.bodies import schema
from manila_lite.api.schema.containers import array
from manila_lite.api.schema.containers import mapping
from manila_lite.api.schema.containers import metadata
from manila_lite.api.schema.containers import obj
from manila_lite.api.schema.fields import alias
from manila_lite.api.schema.fields import since
from manila_lite.api.schema.fields import until
from manila_lite.api.schema.scalars import BOOLEAN_WORD
from manila_lite.api.schema.scalars import FALSE_WORDS
from manila_lite.api.schema.scalars import LARGEST_INTEGER
from manila_lite.api.schema.scalars import TRUE_WORDS
from manila_lite.api.schema.scalars import boolean
from manila_lite.api.schema.scalars import integer
from manila_lite.api.schema.scalars import non_negative_int
from manila_lite.api.schema.scalars import one_of
from manila_lite.api.schema.scalars import optional_id
from manila_lite.api.schema.scalars import optional_uuid
from manila_lite.api.schema.scalars import positive_int
from manila_lite.api.schema.scalars import string
from manila_lite.api.schema.scalars import trimmed
from manila_lite.api.schema.scalars import uuid

__all__ = [
    'BOOLEAN_WORD',
    'Check',
    'FALSE_WORDS',
    'LARGEST_INTEGER',
    'Schema',
    'TRUE_WORDS',
    'Type',
    'ValidationError',
    'alias',
    'anything',
    'array',
    'body_of',
    'boolean',
    'integer',
    'mapping',
    'metadata',
    'non_negative_int',
    'obj',
    'one_of',
    'optional_id',
    'optional_uuid',
    'positive_int',
    'schema',
    'since',
    'string',
    'trimmed',
    'until',
    'uuid',
]
