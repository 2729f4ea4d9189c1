"""Quota class sets: the default limits.

Only the class `default` has an effect, as the defaults of all projects. Others
are stored and shown.
"""

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2.admin.quota_sets import (
    LIMITS,
    SHOWN,
    UPDATED,
    check_not_empty,
    limits_of_version,
)
from manila_lite.quota import sets

_NAME_LENGTH = 255

UPDATE = s.schema(
    wrapper='quota_class_set',
    missing=400,
    extra='refuse',
    class_name=s.anything,
    **LIMITS,
)


class QuotaClassSetsController(wsgi.Controller):
    @wsgi.method('quota_class_set:show', answer={'quota_class_set': SHOWN})
    def show(self, req: wsgi.Request, class_name: str) -> dict:
        limits = self.services.db.read(
            sets.show_class, self.services.limits, class_name
        )
        return {
            'quota_class_set': {
                'id': class_name,
                **limits_of_version(limits, req.minor),
            }
        }

    @wsgi.method(
        'quota_class_set:update', body=UPDATE, answer={'quota_class_set': UPDATED}
    )
    def update(self, req: wsgi.Request, args: dict, class_name: str) -> dict:
        """Set some limits; they apply at once to projects without own ones."""
        if len(class_name) > _NAME_LENGTH:
            raise exception.InvalidInput(
                reason=f'the name of a class may have at most {_NAME_LENGTH} characters'
            )
        args.pop('class_name', None)  # the one in the URL counts
        check_not_empty(args)
        limits = self.services.db.write(
            sets.change_class, self.services.limits, class_name, args
        )
        return {'quota_class_set': limits_of_version(limits, req.minor)}
