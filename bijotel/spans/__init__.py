"""Ended span -> record -> canonical body, and back. One module for each step."""
