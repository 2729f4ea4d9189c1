"""The dummy driver: keeps state, no data; tests give it faults and delays."""
