"""Tools for coding agents over the model context protocol."""
