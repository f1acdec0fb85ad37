"""What is said of a profile before anything else, sentence by sentence."""
