"""The benchmarks: ``python -m bench`` (or ``make bench``). See ``bench/README.md``."""
