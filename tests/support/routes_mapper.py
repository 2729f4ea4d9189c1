"""The table of routes as a mapper of the library Routes."""

from collections.abc import Sequence

import routes as routes_library

from manila_lite.api.router import Route


def build_mapper(
    routes: Sequence[Route], project_id_regex: str
) -> routes_library.Mapper:
    """Build the mapper of all forms of all routes, preferred forms first.

    A match gives the index of the route as `route_number` and a project id in
    the URL as `url_project`. For generating URLs, the index is also the name,
    prefixed by 'project-' for the form with a project id.
    """
    library_mapper = routes_library.Mapper(controller_scan=None, explicit=True)
    library_mapper.minimization = False
    project_requirement = {'url_project': f'(?:{project_id_regex})'}
    order = sorted(
        range(len(routes)),
        key=lambda number: [segment == '' for segment in routes[number].shape],
    )

    def connect(name: str | None, number: int, path: str, requirements: dict) -> None:
        route = routes[number]
        library_mapper.connect(
            name,
            path,
            route_number=number,
            requirements=requirements,
            conditions={'method': [route.method]},
        )

    for project, requirements in (('', {}), ('/{url_project}', project_requirement)):
        for number in order:
            if routes[number].kind in ('collection', 'member'):
                connect(
                    None, number, project + routes[number].path + '.json', requirements
                )
        for number in order:
            if not project or routes[number].kind != 'root':
                connect(
                    f'project-{number}' if project else str(number),
                    number,
                    project + routes[number].path,
                    requirements,
                )
    for number in order:
        if routes[number].kind == 'free':
            connect(None, number, '/{url_project}' + routes[number].path, {})
    library_mapper.create_regs([])
    return library_mapper
