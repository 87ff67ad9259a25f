"""Models that ranks train on their own, and average now and then."""
