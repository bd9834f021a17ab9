"""Extract claims from turns: model-based extractors, reply parsing and grounding."""
