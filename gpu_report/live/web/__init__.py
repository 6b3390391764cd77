"""The server of the live page: who may look, what it answers, and what it sends."""
