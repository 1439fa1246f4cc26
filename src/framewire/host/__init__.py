"""This user's processes on this host: who serves which origin, and memory they share."""
