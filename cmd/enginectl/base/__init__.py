"""What every command uses: its options, exit codes and errors, the terminal, and the way it is run and interrupted."""
