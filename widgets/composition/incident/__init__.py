"""The pieces of ``incident_room``."""
