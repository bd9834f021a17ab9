"""The read path: plan → gather → rank → expand → guard → resolve → select → assemble."""
