"""Types: what API objects consist of: shapes, schemas, quantities, times, names, and the errors that name their fields."""
