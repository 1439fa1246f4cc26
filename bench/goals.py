from bench.results import Results


def report(results: Results) -> str:
    return ""
