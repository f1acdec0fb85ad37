"""What formats share: files, recognition, text forms of messages, remote places, names."""
