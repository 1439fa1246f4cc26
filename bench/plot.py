def draw(results, folder):
    return []
