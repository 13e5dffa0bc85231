"""The widgets of lessons 01 to 03."""
