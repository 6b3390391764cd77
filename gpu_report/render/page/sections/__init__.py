"""The sections of the report, each in words: from an analysis to its view."""
