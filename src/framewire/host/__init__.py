"""This host and this user's processes on it: addresses, the registry of data planes, shared memory, worker threads."""
