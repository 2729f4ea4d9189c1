"""The description of the API in OpenAPI 3.1, made from what serves it.

It is generated on the first request for it; until then nothing of this
package is imported.
"""
