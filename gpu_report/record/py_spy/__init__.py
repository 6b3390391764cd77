"""Where a training without our hook stands while its GPU has nothing to do: dumps of its stacks by py-spy."""
