"""The read path: plan → gather → fuse → guard → rank → assemble → trace."""
