"""Rounds: what one is opened with, its states, harvesting, labelling, releasing and reporting."""
