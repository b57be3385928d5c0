"""What every process of the engine carries to observe itself: sampler, monitors of loop, collector and system, demand."""
