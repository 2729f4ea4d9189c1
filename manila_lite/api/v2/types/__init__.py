"""Share types, their extra specs and their access lists."""
