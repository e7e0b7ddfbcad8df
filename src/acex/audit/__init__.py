"""What auditors ask of explanations: quotes, groups, common changes, feature subsets, verification."""
