"""What is made of the built pages beside the site: the book, as a page, a PDF and an EPUB; slides, notebooks,
and packages for a learning system."""
