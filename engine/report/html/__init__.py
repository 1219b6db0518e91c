"""HTML: a report as one self-contained document, and what every page is made of."""
