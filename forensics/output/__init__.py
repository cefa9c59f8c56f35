"""One small file per output format. Everything from a log is cleaned and masked before it gets here or in here."""
