"""`python -m dynaround`, which is how `accelerate launch -m dynaround` starts the command line."""

from dynaround.cli import main

if __name__ == "__main__":
    main()
