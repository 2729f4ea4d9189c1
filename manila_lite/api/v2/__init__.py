"""The resources of the API: schemas, views and controllers."""
