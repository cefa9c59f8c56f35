"""Opens what the caller names: files, folders, globs, standard input, compressed files and bundles."""
