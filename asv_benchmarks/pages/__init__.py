"""What a report's page costs whoever opens it: size, time to open, time to answer, in a real browser.

Contents: recordings (runs as long as one asks for), browser (measures a page), ``python -m pages`` (prints a table).
"""
