"""How each kind of resource is rescued: one module per kind."""
