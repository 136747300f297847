-- The team's profile: which rules a review runs, with the team's limits and its words for parts of a network.
return {
  rules = "vision or tensor_overflow",
  collections = {
    features = "op:ReLU or op:MaxPool",  -- what the backbone hands on
    kernels = "conv*.weight",
  },
  params = { ["vision-dead-features"] = { share = 99 } },
}
