"""`python -m tformer`, which torchrun can start too."""

from tformer.cli import main

if __name__ == "__main__":
    main()
