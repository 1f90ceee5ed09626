"""Workers: who labels, what is handed out to whom, and the crowds that are not people."""
