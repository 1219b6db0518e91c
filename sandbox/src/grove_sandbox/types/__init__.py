"""Types: shapes and schemas of API objects, their quantities, times and names, and errors that name their fields."""
