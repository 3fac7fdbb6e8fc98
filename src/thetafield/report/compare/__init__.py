"""The comparison of methods on somebody's own table: on the terminal, and as a page."""
