"""The widgets of lessons 11 and 12."""
