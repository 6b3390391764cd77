"""What stands out in the notes on stacks and calls: where processes were, what held them up, what grew."""
