"""From bytes to an event table: shapes, plans and columns, derived from the grammar and replayed over every line."""
