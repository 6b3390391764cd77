"""Import of other tools' logs: a module a format, and one way from their rows to a run folder (`import_logs`)."""
