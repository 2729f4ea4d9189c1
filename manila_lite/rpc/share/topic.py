"""The topic of share services."""

TOPIC = 'manila-share'
BINARY = 'manila-share'
