"""What users hand in: manifest files, streams of documents, and what admission decides about them."""
