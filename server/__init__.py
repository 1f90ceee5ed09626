"""The web face, and the commands that play both sides of a round."""
