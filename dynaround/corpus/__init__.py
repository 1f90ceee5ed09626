"""What is read in: star-rated reviews, labelled corpora, and the sentences of a review."""
