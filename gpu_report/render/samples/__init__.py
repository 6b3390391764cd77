"""The recorded samples as the page holds them: exact, and small enough."""
