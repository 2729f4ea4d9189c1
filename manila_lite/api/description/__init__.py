"""The description of the API in OpenAPI 3.1, made from what serves it.

It is made when it is first asked for: a service that nobody asks imports
nothing of this package.
"""
