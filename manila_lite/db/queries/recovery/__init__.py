"""The state of resources and what recovery does about it."""
