"""Tables: the columns that kubectl prints."""
