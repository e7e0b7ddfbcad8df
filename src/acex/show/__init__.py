"""What was found, for people: words, pictures, pages. Nothing here asks the model."""
