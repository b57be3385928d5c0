"""The engine: scheduler, workers and client of a distributed task runtime."""
