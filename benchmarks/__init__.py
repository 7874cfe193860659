"""Figures of this library, each beside a floor measured in the same run."""
