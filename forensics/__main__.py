"""`python -m forensics`."""

from forensics.cli.main import main

if __name__ == "__main__":
    main()
