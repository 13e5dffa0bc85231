"""How `panel serve` answers a widget on a page."""
