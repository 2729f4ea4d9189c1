"""Share group types."""

from manila_lite.exception.families import Conflict, Invalid, NotFound


class ShareGroupTypeNotFound(NotFound):
    message = 'Share group type {share_group_type_id} could not be found.'


class ShareGroupTypeSpecNotFound(NotFound):
    message = 'Share group type {share_group_type_id} has no group spec {key}.'


class ShareGroupTypeAccessNotFound(NotFound):
    message = (
        'Share group type access of project {project_id} to '
        '{share_group_type_id} could not be found.'
    )


class DefaultShareGroupTypeNotFound(NotFound):
    message = 'No default share group type is configured or it does not exist.'


class ShareGroupTypeInUse(Invalid):
    message = 'Share group type {share_group_type_id} is used by share groups.'


class ShareGroupTypeExists(Conflict):
    message = 'Share group type {name} already exists.'


class ShareGroupTypeAccessExists(Conflict):
    message = (
        'Project {project_id} already has access to share group type '
        '{share_group_type_id}.'
    )


class PublicShareGroupType(Conflict):
    message = (
        'Share group type {share_group_type_id} is public; its access list '
        'cannot be changed.'
    )
