"""RunMetadata and StepStats: what a traced session run did, op by op."""
