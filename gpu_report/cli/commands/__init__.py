"""The commands, a module each; what several of them share lies one floor up."""
