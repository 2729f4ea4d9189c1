"""One module per resource: its schemas, its fields, its controller."""
