"""Runs the graphs of a langgraph.json for a Heddle server (docs/runtime.md).

The server starts it: `python -m heddle.runtime`.
"""
