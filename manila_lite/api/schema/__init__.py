"""Schemas of request bodies, with fast checks and a JSON Schema export.

A schema consists of types. For each version, a type gives a function that
converts the value sent to the value that handlers use: `'10'` becomes 10,
`'true'` becomes True. An error names the field and the rule, never the value,
which may be a secret.
"""

from manila_lite.api.schema.base import (
    Check,
    Type,
    ValidationError,
    alias,
    anything,
    since,
    until,
)
from manila_lite.api.schema.containers import (
    Schema,
    array,
    body_of,
    mapping,
    metadata,
    obj,
    schema,
)
from manila_lite.api.schema.scalars import (
    BOOLEAN_WORD,
    FALSE_WORDS,
    LARGEST_INTEGER,
    TRUE_WORDS,
    boolean,
    integer,
    non_negative_int,
    one_of,
    optional_id,
    optional_uuid,
    positive_int,
    string,
    trimmed,
    uuid,
)

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
