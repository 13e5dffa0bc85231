"""Makes other forms of the course from the built pages: the book as a page, a PDF and an EPUB; slides;
notebooks; and packages for a learning system."""
