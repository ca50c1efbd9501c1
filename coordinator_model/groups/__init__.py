"""One module per group family: what its records do to a membership, and how its state is told from them."""
