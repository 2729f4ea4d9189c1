"""The REST service: versions, routes, controllers and their answers."""
