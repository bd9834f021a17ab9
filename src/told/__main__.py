"""`python -m told` is the command line."""

from told.cli import main

if __name__ == "__main__":
    main()
