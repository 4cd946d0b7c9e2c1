"""`python -m naysay` is the command `naysay`."""

from naysay.cli import main

if __name__ == "__main__":
    main()
