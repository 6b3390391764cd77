"""What the report begins with: what to do first, and in a few sentences what happened."""
