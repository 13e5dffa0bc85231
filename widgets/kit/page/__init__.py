"""What a widget contributes to a page: its module, its headers, and the cache of compiled results."""
