"""The tracker and its parts: a policy that finds out by itself how fast rewards drift.

policy        settings and formulas: start here
step          one decision, and learning from its reward
state         the state of the policy, and the ticket of a decision
tracks        mean and width of every arm, from experts of different speed
kalman, diagonal   their filters, with covariances and without
experts       the weight of each expert
advice        the index, with the effect of a streak, and the probabilities
inverse_gaps  from an index to probabilities
streaks       the effect of pulling an arm several times in a row
fourier, gate      a second track with random features, and when to follow it
seen_rewards, seen_contexts    scales of the rewards and contexts so far
outliers      which values are too far out to be believed
"""
