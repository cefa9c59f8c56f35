"""What a diagnosis needs from the server's host, in one file."""
