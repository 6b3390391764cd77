"""From the options to an exit code: the recording, the command, signals, and how both end."""
