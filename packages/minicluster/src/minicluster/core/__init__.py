"""What every other room uses: errors, ids, the clock, memory that is given back."""
