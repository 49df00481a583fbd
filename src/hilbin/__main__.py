"""``python -m hilbin`` is ``hilbin``."""

from hilbin.cli import main

if __name__ == "__main__":
    main()
